r"""Sums of numbers of hosts that show the server nothing but the sum: who asks what, and why nothing else is shown.

The protocol is that of Bonawitz et al., "Practical secure aggregation for privacy-preserving machine learning" (CCS
2017), with keys that are made anew for each sum. ``_ring.py`` has the numbers, ``_shares.py`` the shares of secrets,
``_ciphers.py`` what comes from the package ``cryptography``, ``_messages.py`` what travels, ``_site.py`` the end of a
host, ``_engine.py`` that of the server. :mod:`dualopt.engine` runs every method over sums; here only the way to them
changes, so that this is an engine around another one.

**Numbers.** A number x becomes the integer :math:`q = \mathrm{round}(2^f x)` in :math:`\mathbb Z/2^{64}`. All hosts
have agreed on a bound R of their numbers, and :math:`f = \lfloor\log_2(2^{62}/(nR))\rfloor` for n hosts: the sum of n
numbers of at most R is below :math:`2^{62}` and cannot wrap. A host with a larger number refuses, in a fixed sentence.
The server decodes exactly the sum of the rounded numbers, so that a sum is off by at most :math:`n 2^{-f-1}`. A number
of a client that may be infinite has a 1 in a second, masked, number, so that the server learns how many were infinite.

**Masks.** For each sum every host u of its cohort C makes two key pairs of X25519, for boxes and for masks, and
publishes the public keys (*Advertise*). It draws a seed :math:`b_u` and gives each other host one share of
:math:`b_u` and one of its private key for masks, in a box that only that host can open (*Deal*). It adds
(*Add*), with the stream G of ChaCha20,

.. math:: y_u = q_u + G(b_u) + \sum_{v > u} G(s_{uv}) - \sum_{v < u} G(s_{uv}) \pmod{2^{64}},

where u and v alone can compute :math:`s_{uv}`. Of the hosts A that have added the server then asks for shares
(*Reveal*): of :math:`b_v` for v in A, and of the private key of v for the others of C. With t shares each it takes all
masks off. Keys and seeds of one sum say nothing of another one. The cohort deals for the next sum while it reveals
this one, so that a sum takes two calls where the cohort stays.

**Who falls.** After *Deal* a host may fall at any time: its masks are taken off without it. What it sends later is
hidden by its :math:`b_u`, of which nobody gives a share any more. With fewer than :math:`t = \lceil 2n/3\rceil` hosts
there is no sum.

**Why both kinds of shares never meet.** A host reveals once in a sum, for one set A that has itself in it: for each v
one of the two shares. The server would need t hosts that believe v has added, and t that believe it has not;
:math:`2t > n`, so that at least :math:`2t - n` hosts must break the rules with it (1 of 3, 4 of 8).

**Cohorts.** A host adds to sums of at least 3 hosts that it knows by name, once for each set of keys. Where it has
revealed shares in a round, it adds to that round again, after a restart or in a run that is begun anew, only in a sum
of the same hosts: the difference of two sums would show the number of the host by which they differ. Sums for
certificates are of all hosts or of none.
Sums of *different* rounds whose cohorts differ by one host may still show nearly all of that host's upload.

**What the server learns**: the sums, who takes part, how many numbers were infinite, when who answers, and at the start
constants and sizes of each host. It may not see that a host adds nonsense: checks of single uploads are gone. Public
keys must be authentic: hosts with certificates sign them (``identity``), otherwise a server could put its own in their
place, and only a server that follows the protocol learns no more than the sums.
"""

from dualopt.engine.secure_sums._engine import SecureBlocks, SecureSums
from dualopt.engine.secure_sums._ring import LARGEST
from dualopt.engine.secure_sums._site import FEWEST, SecureHost

__all__ = ["FEWEST", "LARGEST", "SecureBlocks", "SecureHost", "SecureSums"]

"""Where methods fail: small deterministic instances with closed forms, and what happens on the other side.

Each claim is one instance, nearly always with one variable, and says for every parameter what the method does there:
inside a range that is given in closed form it converges, outside it diverges or ends at a wrong point that is given
as well. The claims of the last column hold for whole classes of problems, or show how far a theorem of a paper reaches.

==========================  ==================================================  =====================================
claim                       what fails                                          see also
==========================  ==================================================  =====================================
``fedavg_constant_step``    FedAvg diverges for every constant step             ``p4_factors_of_fedavg``
``fedavg_vanishing_step``   ... and for vanishing steps, unless their squares   ``fedpd_claim_d_1``
                            have a finite sum
``fedavg_biased_point``     FedAvg ends at a wrong point                        ``fedavg_bias``
``fedprox_biased_point``    FedProx ends at a wrong point                       ``fedprox_bias``
``fedadmm_two_clients``     FedADMM drifts to a wrong point, then diverges      ``fedadmm_dual_drift``
``afedpd_small_rho``        A-FedPD diverges for small rho                      ``a1_range_of_rho``,
                                                                                ``afedpd_range_of_rho``
``fedpd_large_eta``         FedPD diverges for large eta                        ``fedpd_theorem_1``
``dualfl_large_nu``         DualFL diverges for nu far above mu                 ``theorem_3_3``
``dualfl_large_rho``        DualFL with rho above nu/L is slower than promised  ``d3_range_of_rho``, ``theorem_3_3``
``dualfl_corrected_start``  DualFL diverges if local solvers start from         ``theorem_3_2_inexact``
                            corrected points
``scaffnew_long_step``      Scaffnew diverges for steps beyond 2/L              ``scaffnew_one_step``
==========================  ==================================================  =====================================
"""

PAPER = "Counterexamples"

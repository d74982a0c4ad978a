// The page: all its chapters, the address, what is spoken, and the height for a page that frames it.

class Page {
  constructor() {
    this.chapters = {};
    this.status = document.querySelector("[role=status]");
  }

  async load() {
    for (const section of document.querySelectorAll("section.chapter")) {
      const described = JSON.parse(section.querySelector(".described").textContent);
      const buffer = await unpacked(section.querySelector(".floats").textContent);
      this.chapters[described.name] = new Chapter(section, described, buffer, this);
    }
    this.fromAddress();
    addEventListener("popstate", (event) => this.restore(event.state));
    addEventListener("hashchange", () => { if (!this.moving) this.fromAddress(); });
    if (parent !== window) {
      const tell = () => parent.postMessage({ dualopt: "lesson", chapters: Object.keys(this.chapters), height: document.documentElement.scrollHeight }, "*");
      new ResizeObserver(tell).observe(document.body);
      tell();
    }
    document.body.dataset.ready = "yes";
  }

  fromAddress() { // #chapter?m1=3,1&K=8
    const [name, words] = location.hash.slice(1).split("?");
    if (this.chapters[name] && words) this.chapters[name].open(words);
  }

  remember(chapter) {
    const words = `#${chapter.described.name}?${chapter.address()}`;
    if (words === location.hash) return;
    try { history.pushState(this.states(), "", words); } catch { /* a frame in a notebook has no address */ }
  }

  states() { return Object.fromEntries(Object.entries(this.chapters).map(([name, c]) => [name, c.address()])); }

  restore(states) {
    for (const [name, c] of Object.entries(this.chapters)) {
      const words = states?.[name] ?? "";
      if (words !== c.address()) c.open(words);
    }
    if (!states) this.fromAddress();
  }

  async copy(chapter, button) {
    const address = `${location.href.split("#")[0]}#${chapter.described.name}?${chapter.address()}`;
    try {
      await navigator.clipboard.writeText(address);
      button.textContent = "copied";
    } catch { // without the right to: select it
      prompt("The address of this state:", address);
    }
    setTimeout(() => { button.textContent = "copy link"; }, 1500);
  }

  // One region speaks for all that moved, when the hand rests.
  say(chapter, text) {
    if (chapter.said === text) return;
    const first = chapter.said === undefined;
    chapter.said = text;
    if (first) return;
    clearTimeout(this.speaking);
    this.speaking = setTimeout(() => { this.status.textContent = text; }, 600);
  }
}

const page = new Page();
page.load();

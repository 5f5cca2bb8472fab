/* A log that is read live by line number. The page brings lines as text; these scripts colour them, hear of new ones, and keep a
 * bounded window of rows. Loaded behind log-text, log-window, log-scroll, log-live, log-marks, log-search, log-facts, log-controls. */
(function () {
  "use strict";
  const Beamtime = window.Beamtime;
  const { number, element } = Beamtime.logText;

  class Log extends Beamtime.LogScroll {
    constructor(card) {
      super(card);
      this.heard = this.known; // what was known when following ended
      this.more = this.strip("bt-log-more", () => {
        this.follow(true);
        this.box.focus({ preventScroll: true });
      });
      this.passed = this.strip("bt-log-passed", () => this.showPassed());
      this.facts = new Beamtime.LogFacts(this);
      this.search = new Beamtime.LogSearch(this);
      this.controls = new Beamtime.LogControls(this);
      this.live = new Beamtime.LogLive(this);
      this.watchers.push(() => this.say());
      // The spacers first: without them nothing can be scrolled to its place.
      this.drawTail();
      this.space();
      this.begin();
      if (!this.complete || this.next < this.known) this.live.open();
      this.draw();
    }

    /** At the line of the address, at the first error of what failed, or at the end. */
    begin() {
      const opening = Number(this.words.opening || 0);
      if (!this.words.prefix) window.addEventListener("hashchange", () => this.goToHash());
      if (!this.words.prefix && this.goToHash()) return;
      if (opening) this.choose(opening);
      else if (!this.words.expired) this.follow(true);
    }

    strip(className, act) {
      const strip = element("div", className);
      strip.hidden = true;
      const button = strip.appendChild(element("button", "bt-btn bt-btn--small"));
      button.type = "button";
      button.addEventListener("click", act);
      this.card.querySelector(".bt-log-frame").append(strip);
      return strip;
    }

    // --- Going to a line ------------------------------------------------------------------------------------------------

    choose(n) {
      const line = Math.max(1, Math.min(n, this.known - 1));
      this.follow(false);
      this.rows.querySelector(".is-chosen")?.classList.remove("is-chosen");
      this.chosen = line;
      this.rowOf(line)?.classList.add("is-chosen");
      return this.showAt(line, { middle: true });
    }

    /** The same, kept in the address, with the stream where there are several: so a line can be sent to a colleague. */
    goTo(n) {
      const line = Math.max(1, Math.min(n, this.known - 1));
      if (!this.words.prefix) {
        const query = new URLSearchParams(location.search);
        if (this.words.several) query.set("stream", this.words.stream);
        const rest = query.toString();
        history.replaceState(history.state, "", `${location.pathname}${rest && `?${rest}`}#L${line}`);
      }
      this.choose(line);
    }

    /** Whether the address names a line. One before the first is the first, one behind the last is the last. */
    goToHash() {
      const found = /^#L(\d+)$/.exec(location.hash);
      if (found) this.choose(Number(found[1]));
      return Boolean(found);
    }

    // --- Following --------------------------------------------------------------------------------------------------------

    follow(on) {
      this.following = on;
      this.heard = this.known;
      const box = this.card.querySelector("[data-log-follow] input");
      if (box) box.checked = on;
      if (on) this.draw();
      this.say();
    }

    handUp() {
      if (this.following && this.box.scrollHeight > this.box.clientHeight) this.follow(false);
    }

    scrolled() {
      const top = this.box.scrollTop;
      const moved = top - this.lastTop;
      const below = this.box.scrollHeight - top - this.box.clientHeight;
      this.lastTop = top;
      // What the script itself moved has been noted already, so this was a hand.
      if (this.following && moved < -1 && below > 24) this.follow(false);
      else if (!this.following && moved > 1 && below < 4 && this.next === this.known && !this.complete) this.follow(true);
      this.load();
    }

    /** Lines [from, to) came faster than they could be shown: they are above, by number, and it is said. */
    skipped(from, to) {
      if (!this.following || to <= from) return;
      this.gap = { from: this.gap?.from ?? from, to };
      this.passedCount = (this.passedCount || 0) + to - from;
      this.passed.firstChild.textContent = this.words.wordsSkipped.replace("{n}", number.format(this.passedCount));
      this.passed.hidden = false;
      clearTimeout(this.passing);
      this.passing = setTimeout(() => this.forgetPassed(), 30000);
    }

    forgetPassed() {
      this.gap = null;
      this.passedCount = 0;
      this.passed.hidden = true;
    }

    showPassed() {
      const from = this.gap?.from;
      this.forgetPassed();
      if (from) this.goTo(from);
      this.box.focus({ preventScroll: true });
    }

    say() {
      const waiting = this.following ? 0 : this.known - this.heard;
      const { wordsNew, wordsNewOne } = this.words;
      this.more.hidden = waiting <= 0;
      if (waiting > 0) {
        this.more.firstChild.textContent = waiting === 1 ? wordsNewOne : wordsNew.replace("{n}", number.format(waiting));
      }
      const follow = this.card.querySelector("[data-log-follow]");
      if (follow) follow.hidden = this.complete;
    }

    /** Nothing follows: how large it has become, and what is missing in it, if anything is. */
    ended() {
      this.open = "";
      this.draw();
      this.facts.look();
    }

    gone() {
      Beamtime.jobClosed?.();
    }
  }

  let log = null;
  Beamtime.Log = Log;
  const cards = [...document.querySelectorAll(".bt-log-card[data-stream]")];
  const logs = cards.map((card) => new Log(card));
  log = logs[0] || null;

  /** The first container has started: its log is fetched as the page would have shown it. */
  Beamtime.openLog = async function () {
    if (log || Beamtime.openingLog) return;
    Beamtime.openingLog = true;
    try {
      const answer = await fetch(location.pathname, { credentials: "same-origin" });
      if (!answer.ok || log) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("job-log");
      const place = document.getElementById("job-log-place");
      if (!fresh?.dataset.stream || !place) return;
      place.replaceChildren(document.adoptNode(fresh));
      log = new Log(fresh);
    } finally {
      Beamtime.openingLog = false;
    }
  };
})();

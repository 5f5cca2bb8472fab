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
      this.ranges = []; // [from, to) of lines that were left out for a reader who follows
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
      this.homing = on && this.next < this.known; // on the way to the end, by their own wish
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

    /** The server goes on at line `to`. What had come and is not drawn yet is left out too: `catchUp` says of how much. */
    behind(to) {
      this.known = Math.max(this.known, to);
      this.buffer = [];
      this.draw();
    }

    /** Lines [from, to) came faster than they could be shown: they are above, by number, and it is said. */
    skipped(from, to) {
      if (!this.following || to <= from) return;
      const apart = this.ranges.filter(([begin, end]) => end < from || begin > to);
      const joined = this.ranges.filter(([begin, end]) => end >= from && begin <= to).concat([[from, to]]);
      this.ranges = [...apart, [Math.min(...joined.map(([begin]) => begin)), Math.max(...joined.map(([, end]) => end))]];
      const count = this.ranges.reduce((sum, [begin, end]) => sum + end - begin, 0);
      this.passed.firstChild.textContent = this.words.wordsSkipped.replace("{n}", number.format(count));
      this.passed.hidden = false;
      clearTimeout(this.passing);
      this.passing = setTimeout(() => this.forgetPassed(), 30000);
    }

    forgetPassed() {
      this.ranges = [];
      this.passed.hidden = true;
    }

    showPassed() {
      const from = Math.min(...this.ranges.map(([begin]) => begin));
      this.forgetPassed();
      if (Number.isFinite(from)) this.goTo(from);
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

    /** The text was given up by a rule while the page was open. What the rule is, an answer about the lines says. */
    async expired() {
      try {
        await this.read(this.known, 1);
      } catch { /* that is where it is said */ }
    }

    /** As the page would be if it were loaded now: the sentence in the place of the lines, and nothing is asked again. */
    expire(words) {
      if (this.words.expired) return;
      this.words.expired = "yes";
      this.live?.close();
      this.follow(false);
      this.buffer = [];
      this.open = "";
      this.clear(this.known);
      this.empty ||= element("p", "bt-log-empty");
      this.empty.textContent = words;
      this.tail.replaceChildren(this.empty);
      this.space();
      this.above.style.height = this.below.style.height = "0";
      this.forgetPassed();
      for (const node of this.card.querySelectorAll(".bt-log-search, .bt-log-actions, .bt-log-level, [data-log-stored]")) node.hidden = true;
      this.changed();
      this.facts.look();
    }
  }

  let log = null;
  Beamtime.Log = Log;
  /** Something about a log of this job is new, its gaps or its digest: told by the job's socket. */
  Beamtime.logNews = (stream) => {
    for (const one of new Set([log, ...logs])) if (one?.words.stream === stream) one.facts.news();
  };
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

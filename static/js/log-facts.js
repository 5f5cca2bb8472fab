/* What is known of a log as a whole: its gaps, between the lines and below them; how many lines, whether complete, the digest, and
 * until when it is kept. */
(function () {
  "use strict";
  const Beamtime = window.Beamtime;
  const { language, number, clock, zoned, json, element, icon } = Beamtime.logText;
  const WHILE_LIVE = 30000; // gaps and digest are looked at again
  const SOON = 500; // after it was told that there is something new
  const SIZE = (digits) =>
    new Intl.NumberFormat(language, { style: "unit", unit: "kilobyte", maximumFractionDigits: digits });

  Beamtime.LogFacts = class {
    constructor(log) {
      this.log = log;
      this.foot = log.card.querySelector("[data-log-foot]");
      const { gaps, sha256 } = log.words;
      this.sealed = Boolean(sha256);
      this.gaps(JSON.parse(gaps || "[]"));
      this.foot?.addEventListener("click", (event) => this.copy(event));
      log.watchers.push(() => {
        this.place();
        this.say();
      });
      if (!this.sealed && !log.words.expired) this.later(WHILE_LIVE);
      this.say();
    }

    later(wait) {
      clearTimeout(this.again);
      this.again = setTimeout(() => this.look(), wait);
    }

    /** Several pieces of news in a short time are one question. */
    news() {
      this.soon ||= setTimeout(() => {
        this.soon = 0;
        this.look();
      }, SOON);
    }

    /** Ask for the facts; again later, until nothing can change any more. */
    async look() {
      try {
        if (!document.hidden) {
          const facts = await json(this.log.words.streamUrl);
          if (facts?.gaps) this.take(facts);
        }
      } catch { /* no connection: the next turn tries again */ }
      if (!this.sealed && !this.log.words.expired && !Beamtime.closed) this.later(WHILE_LIVE);
    }

    take(facts) {
      const { words, card } = this.log;
      const size = facts.bytes < 1000 ? `${facts.bytes} B` : SIZE(facts.bytes < 10000 ? 1 : 0).format(facts.bytes / 1000);
      card.querySelector("[data-log-bytes]").textContent = size;
      this.gaps(facts.gaps);
      if (facts.sha256) this.digest(facts.sha256);
      words.trouble = facts.trouble;
      this.log.holding(() => this.place());
      if (this.log.following) this.log.toEnd();
      this.say();
    }

    // --- Gaps ---------------------------------------------------------------------------------------------------------

    gaps(list) {
      this.log.gaps = new Map();
      for (const gap of list) {
        const before = this.log.gaps.get(gap.before) || [];
        before.push(gap);
        this.log.gaps.set(gap.before, before);
      }
      this.count = list.length;
    }

    /** Every gap stands above the line before which something is missing; the last one may stand behind all lines. */
    place() {
      const { log } = this;
      for (const [before, gaps] of log.gaps) {
        const row = log.rowOf(before);
        if (row) row.classList.toggle("has-gap", this.put(row, gaps));
      }
      this.put(log.tail, (log.next === log.known && !log.words.expired && log.gaps.get(log.known)) || []);
    }

    /** These gaps, and no others, at the head of `place`; left alone while they say the same. Whether there are any. */
    put(place, gaps) {
      const said = JSON.stringify(gaps);
      if ((place.dataset.gaps || "[]") !== said) {
        place.dataset.gaps = said;
        for (const gap of place.querySelectorAll(".bt-log-gap")) gap.remove();
        place.prepend(...gaps.map((gap) => this.row(gap)));
      }
      return gaps.length > 0;
    }

    row(gap) {
      const row = element("div", "bt-log-gap");
      row.append(element("span", "bt-log-num", this.log.words.wordsGap), element("span", "bt-log-time"));
      row.append(element("span", "bt-log-gap-text", `${gap.words} ${this.between(gap)}`.trim()));
      return row;
    }

    between({ after_ns: after, until_ns: until }) {
      const { words } = this.log;
      const time = (ns) => clock.format(ns / 1e6);
      if (after && until) return words.wordsBetween.replace("{from}", time(after)).replace("{to}", time(until));
      return after ? words.wordsAfter.replace("{from}", time(after)) : "";
    }

    // --- Below the lines ------------------------------------------------------------------------------------------------

    say() {
      const { log } = this;
      const { wordsComplete, wordsCompleteOne, wordsHere, wordsHereOne } = log.words;
      const { wordsLast, wordsGaps, wordsGapsOne } = log.words;
      const count = log.card.querySelector("[data-log-count]");
      if (!count) return;
      const lines = log.known - 1;
      const [one, many] = log.complete ? [wordsCompleteOne, wordsComplete] : [wordsHereOne, wordsHere];
      const said = lines === 1 ? one : many.replace("{n}", number.format(lines));
      if (count.lastChild.textContent !== said) count.lastChild.textContent = said;
      count.querySelector("svg")?.classList.toggle("is-hidden", this.count > 0);
      const gaps = log.card.querySelector("[data-log-gaps]");
      const lost = this.count ? (this.count === 1 ? wordsGapsOne : wordsGaps).replace("{n}", number.format(this.count)) : "";
      if (gaps.dataset.said !== lost) {
        gaps.dataset.said = lost;
        gaps.replaceChildren(...(lost ? [icon("exclamation-triangle"), ` ${lost}`] : []));
      }
      const last = log.next === log.known ? log.rows.lastElementChild : null;
      if (!last) return;
      const time = last.querySelector(".bt-log-time").textContent;
      log.card.querySelector("[data-log-last]").textContent = time && `· ${wordsLast.replace("{time}", zoned(time, log.words))}`;
    }

    digest(sha256) {
      this.sealed = true;
      const spot = this.log.card.querySelector("[data-log-digest]");
      if (!spot || spot.dataset.digest === sha256) return;
      spot.dataset.digest = spot.title = sha256;
      spot.querySelector("code").textContent = `${sha256.slice(0, 4)}…${sha256.slice(-4)}`;
      spot.hidden = false;
    }

    copy(event) {
      const spot = event.target.closest("[data-log-digest]");
      if (!spot || !navigator.clipboard) return;
      navigator.clipboard.writeText(spot.dataset.digest).then(() => Beamtime.toast?.(this.log.words.wordsCopied));
    }
  };
})();

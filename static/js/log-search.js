/* Search over the whole log: the server looks, half a second at a time; the page shows how far it has come, goes from hit to hit,
 * and marks what is in view. */
(function () {
  "use strict";
  const Beamtime = window.Beamtime;
  const { number, json } = Beamtime.logText;
  const KEPT = 50000; // numbers of hits kept here; beyond that the server is asked for the next one
  const TYPING = 350;

  Beamtime.LogSearch = class {
    constructor(log) {
      this.log = log;
      this.form = log.card.querySelector("[data-log-search]");
      if (!this.form) return;
      this.field = this.form.querySelector("input");
      this.said = this.form.querySelector("[data-log-hits]");
      this.url = log.words.searchUrl;
      this.forget();
      this.form.hidden = false;
      this.form.addEventListener("submit", (event) => event.preventDefault());
      this.field.addEventListener("input", () => {
        clearTimeout(this.typing);
        this.typing = setTimeout(() => this.start(), TYPING);
      });
      this.field.addEventListener("keydown", (event) => this.key(event));
      this.form.addEventListener("click", (event) => this.click(event));
      log.watchers.push(() => this.rowsChanged());
    }

    get on() {
      return Boolean(this.asked);
    }

    key(event) {
      if (event.key === "Escape") {
        event.preventDefault();
        this.stop();
        this.log.box.focus({ preventScroll: true });
      } else if (event.key === "Enter") {
        event.preventDefault();
        clearTimeout(this.typing);
        if (this.question() !== this.asked) this.start();
        else this.go(event.shiftKey ? -1 : 1);
      }
    }

    click(event) {
      const button = event.target.closest("button");
      if (!button) return;
      if (button.dataset.logStep) this.go(Number(button.dataset.logStep));
      else {
        button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
        this.start();
      }
    }

    pressed(name) {
      return this.form.querySelector(`[data-log-${name}]`).getAttribute("aria-pressed") === "true";
    }

    question() {
      if (!this.field.value) return "";
      const query = new URLSearchParams({ q: this.field.value });
      if (this.pressed("regex")) query.set("regex", "yes");
      if (this.pressed("case")) query.set("case", "yes");
      return query.toString();
    }

    forget() {
      this.abort?.abort();
      Object.assign(this, { asked: "", hits: [], total: 0, upto: 1, done: false, now: 0, trouble: "", from: 0, version: (this.version || 0) + 1 });
    }

    stop() {
      clearTimeout(this.typing);
      this.field.value = "";
      this.forget();
      this.mark();
      this.say();
    }

    async start() {
      const question = this.question();
      // Who follows looks for the last hit, who reads for the next one.
      const back = this.log.following;
      const before = back ? this.log.known : this.now || this.topLine();
      this.forget();
      this.asked = question;
      this.from = before;
      this.abort = new AbortController();
      this.mark();
      this.say();
      if (!question) return;
      try {
        await this.nearest(before, back ? "backward" : "forward");
        await this.count();
      } catch (error) {
        if (error.name !== "AbortError") this.fail(this.log.words.wordsSearchFailed);
      }
    }

    fail(words) {
      this.trouble = words;
      this.done = true;
      this.say();
    }

    async ask(rest) {
      const version = this.version;
      const found = await json(`${this.url}?${this.asked}&${rest}`, this.abort.signal);
      if (version !== this.version || !found) throw new DOMException("", "AbortError");
      if (found.refused) {
        this.fail(found.refused.errors?.[0]?.message || found.refused.detail);
        throw new DOMException("", "AbortError");
      }
      return found;
    }

    topLine() {
      const row = this.log.following ? null : this.log.topRow();
      return row ? this.log.numberOf(row) : Math.max(1, this.log.known - 1 - Math.floor(this.log.box.clientHeight / this.log.unit));
    }

    /** One quick look from where the reader is, so that a common word does not wait for the count. */
    async nearest(from, direction) {
      const found = await this.ask(`from=${from}&limit=1&direction=${direction}`);
      if (found.hits.length) this.goTo(found.hits[0]);
    }

    /** Count from `upto` to the end, portion by portion. */
    async count() {
      if (this.counting === this.version) return;
      this.counting = this.version;
      const version = this.version;
      try {
        for (;;) {
          const found = await this.ask(`from=${this.upto}&limit=${this.hits.length < KEPT ? 5000 : 0}`);
          this.hits.push(...found.hits);
          this.total += found.count;
          this.lines = found.lines;
          this.upto = found.next ?? Math.max(this.upto, found.lines + 1);
          this.done = found.next === null;
          if (!this.now && (this.done || this.hits.some((n) => n >= this.from))) {
            const hit = this.hits.find((n) => n >= this.from) ?? this.hits[0];
            if (hit) this.goTo(hit);
          }
          this.say();
          if (this.done) return;
        }
      } finally {
        if (this.counting === version) this.counting = 0;
      }
    }

    get listed() {
      return this.done && this.hits.length === this.total;
    }

    async go(step) {
      if (!this.on || this.trouble || (this.done && !this.total)) return;
      const here = this.now || this.topLine() - step;
      if (this.listed) {
        const after = this.hits.findIndex((n) => n > here);
        const place = step > 0 ? after : (after < 0 ? this.hits.length : after) - (this.hits.includes(here) ? 2 : 1);
        this.goTo(this.hits[step > 0 && place < 0 ? 0 : (place + this.hits.length) % this.hits.length]);
        return;
      }
      const direction = step > 0 ? "forward" : "backward";
      try {
        let next = Math.max(1, here + step);
        for (let wrapped = here + step < 1; ;) {
          const found = await this.ask(`from=${next}&limit=1&direction=${direction}`);
          if (found.hits.length) {
            this.goTo(found.hits[0]);
            return;
          }
          next = found.next;
          if (next === null) {
            if (wrapped) return;
            wrapped = true;
            next = step > 0 ? 1 : this.log.known;
          }
        }
      } catch { /* another question has been asked meanwhile, or there is no connection */ }
    }

    goTo(n) {
      this.now = n;
      this.log.follow(false);
      this.log.showAt(n, { middle: true });
      this.mark();
      this.say();
    }

    say() {
      const { wordsHit, wordsHits, wordsHitsOne, wordsNoHit, wordsSearching } = this.log.words;
      let words = "";
      const total = number.format(this.total);
      if (this.trouble) words = this.trouble;
      else if (!this.on) words = "";
      else if (!this.done) {
        const part = Math.min(99, Math.floor((100 * (this.upto - 1)) / Math.max(1, this.lines || this.log.known - 1)));
        words = wordsSearching.replace("{n}", total).replace("{percent}", part);
      } else if (!this.total) words = wordsNoHit;
      else if (this.listed && this.now) {
        const place = this.hits.indexOf(this.now) + 1;
        words = place ? wordsHit.replace("{k}", number.format(place)).replace("{n}", total) : wordsHits.replace("{n}", total);
      } else words = (this.total === 1 ? wordsHitsOne : wordsHits).replace("{n}", total);
      if (this.said.textContent !== words) this.said.textContent = words;
      this.said.classList.toggle("bt-is-bad", Boolean(this.trouble));
      this.field.setAttribute("aria-invalid", String(Boolean(this.trouble)));
      for (const button of this.form.querySelectorAll("[data-log-step]")) button.disabled = !this.on || (this.done && !this.total);
    }

    /** New rows are marked; new lines of a running log are counted a moment later. */
    rowsChanged() {
      if (!this.on) return;
      this.mark();
      if (this.done && !this.trouble && this.upto < this.log.known && !this.recounting) {
        this.recounting = setTimeout(() => {
          this.recounting = 0;
          if (this.on) this.count().catch(() => {});
        }, 1000);
      }
    }

    mark() {
      Beamtime.logMarks(this.log, this);
    }
  };
})();

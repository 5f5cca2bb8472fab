/* The log's buttons, menu and keys. */
(function () {
  "use strict";
  const Beamtime = window.Beamtime;
  const { number, json, nameTimes, remember, remembered } = Beamtime.logText;
  const ANNOUNCE = 15000; // for who reads by ear: at most this often

  Beamtime.LogControls = class {
    constructor(log) {
      this.log = log;
      const { card, box } = log;
      nameTimes(card);
      this.toggle("times", "off", (on) => box.classList.toggle("has-times", on));
      this.wrap = this.toggle("wrap", "on", (on) => box.classList.toggle("is-nowrap", !on));
      this.toggle("announce", "off", (on) => { this.announcing = on; });
      this.follow = card.querySelector("[data-log-follow] input");
      this.follow?.addEventListener("change", () => log.follow(this.follow.checked));
      this.line = card.querySelector("[data-log-line]");
      this.line?.closest("[hidden]")?.removeAttribute("hidden");
      this.line?.addEventListener("keydown", (event) => this.lineKey(event));
      for (const button of card.querySelectorAll("[data-log-error], [data-log-copy]")) button.hidden = false;
      card.querySelector("[data-log-error]")?.addEventListener("click", () => this.lastError());
      card.addEventListener("click", (event) => this.clicked(event));
      card.addEventListener("change", (event) => {
        if (event.target.matches("#log-stream, [data-log-level]")) event.target.form.requestSubmit();
      });
      // Back from the lines of a level: all are shown here.
      const level = card.querySelector("[data-log-level]");
      if (level) window.addEventListener("pageshow", () => { level.value = "all"; });
      // A hand that turns upwards ends following at once: in a fast log the next line would pull the box down again first.
      box.addEventListener("scroll", () => log.scrolled(), { passive: true });
      box.addEventListener("wheel", (event) => event.deltaY < 0 && log.handUp(), { passive: true });
      box.addEventListener("keydown", (event) => this.boxKey(event));
      if (!log.words.prefix) document.addEventListener("keydown", (event) => this.key(event));
      this.announced = log.known;
      log.watchers.push(() => this.announce());
    }

    toggle(name, otherwise, act) {
      const { card, log } = { card: this.log.card, log: this.log };
      const button = card.querySelector(`[data-log-${name}]`);
      if (!button) return null;
      const set = (on) => {
        button.setAttribute(button.getAttribute("role") === "menuitemcheckbox" ? "aria-checked" : "aria-pressed", String(on));
        act(on);
      };
      let on = remembered(`bt-log-${name}`, otherwise) === "on";
      button.hidden = false;
      set(on);
      button.addEventListener("click", () => {
        on = !on;
        remember(`bt-log-${name}`, on ? "on" : "off");
        log.holding(() => set(on));
        if (log.following) log.toEnd();
      });
      return button;
    }

    closeMenu() {
      const menu = this.log.card.querySelector("details[open].bt-menu");
      if (menu) menu.open = false;
    }

    lineKey(event) {
      const { log } = this;
      if (event.key === "Escape") log.box.focus();
      if (event.key !== "Enter") return;
      event.preventDefault();
      const asked = Number(this.line.value.replace(/[^\d]/g, "").slice(0, 15));
      if (!asked || log.known === 1) return;
      this.line.value = "";
      this.closeMenu();
      log.goTo(asked);
      log.box.focus({ preventScroll: true });
    }

    clicked(event) {
      const copy = event.target.closest("[data-log-copy]");
      if (copy) this.copy(copy.dataset.logCopy === "numbers");
      const link = event.target.closest(".bt-log-num[href]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.log.goTo(Number(/\d+$/.exec(link.href)[0]));
    }

    // --- Errors -------------------------------------------------------------------------------------------------------

    /** The last line that tells of an error; pressed again, the one before it. */
    async lastError() {
      const { log } = this;
      const button = log.card.querySelector("[data-log-error]");
      if (button.getAttribute("aria-busy") === "true") return;
      button.setAttribute("aria-busy", "true");
      try {
        let next = this.error > 1 && this.error === log.chosen ? this.error - 1 : log.known;
        while (next) {
          const found = await json(`${log.words.searchUrl}?errors=yes&direction=backward&limit=1&from=${next}`);
          if (!found?.hits) return;
          if (found.hits.length) {
            this.error = found.hits[0];
            log.goTo(this.error);
            return;
          }
          next = found.next;
        }
        Beamtime.toast?.(this.error ? log.words.wordsNoMoreErrors : log.words.wordsNoErrors);
        this.error = 0;
      } catch { /* the live mark speaks for the connection */ } finally {
        button.removeAttribute("aria-busy");
      }
    }

    // --- Copy ---------------------------------------------------------------------------------------------------------

    /** The selected rows, or those in view; as shown, with or without their numbers. */
    copy(withNumbers) {
      const { log } = this;
      const picked = window.getSelection();
      const rows = [...log.rows.children].filter((row) =>
        picked && !picked.isCollapsed && log.rows.contains(picked.anchorNode) ? picked.containsNode(row, true) : this.inView(row));
      const text = rows.map((row) => {
        const words = row.querySelector(".bt-log-text").textContent;
        return withNumbers ? `${log.numberOf(row)}\t${words}` : words;
      });
      this.closeMenu();
      if (!rows.length || !navigator.clipboard) return;
      const said = rows.length === 1 ? log.words.wordsCopiedOne : log.words.wordsCopiedLines;
      navigator.clipboard.writeText(`${text.join("\n")}\n`)
        .then(() => Beamtime.toast?.(said.replace("{n}", number.format(rows.length))), () => {});
    }

    inView(row) {
      const box = this.log.box.getBoundingClientRect();
      const at = row.getBoundingClientRect();
      return at.bottom > box.top && at.top < box.bottom;
    }

    // --- For the ear ----------------------------------------------------------------------------------------------------

    announce() {
      if (!this.announcing || this.speaking || this.log.known <= this.announced) return;
      this.speaking = setTimeout(() => {
        this.speaking = 0;
        const fresh = this.log.known - this.announced;
        this.announced = this.log.known;
        this.spoke = Date.now();
        const { wordsNew, wordsNewOne } = this.log.words;
        this.speaker ||= this.mouth();
        this.speaker.textContent = fresh === 1 ? wordsNewOne : wordsNew.replace("{n}", number.format(fresh));
      }, Math.max(1000, (this.spoke || 0) + ANNOUNCE - Date.now()));
    }

    /** Made only for who asked for it: the page has one polite region otherwise. */
    mouth() {
      const spot = this.log.card.appendChild(document.createElement("p"));
      spot.className = "bt-sr";
      spot.setAttribute("aria-live", "polite");
      return spot;
    }

    // --- Keys -----------------------------------------------------------------------------------------------------------

    boxKey(event) {
      const { log } = this;
      if (["PageUp", "ArrowUp"].includes(event.key)) log.handUp();
      else if (event.key === "Escape" && log.search.on) log.search.stop();
      else if (event.key === "/" && log.search.field && Beamtime.keysFree?.(event)) {
        event.preventDefault();
        log.search.field.select();
      }
    }

    key(event) {
      if (!Beamtime.keysFree?.(event)) return;
      const { log } = this;
      const inside = log.box.contains(document.activeElement);
      if (event.key === "f" && !log.complete) log.follow(!log.following);
      else if (event.key === "w") this.wrap?.click();
      else if (event.key === "n" && log.search.on) log.search.go(1);
      else if (event.key === "N" && log.search.on) log.search.go(-1);
      else if (event.key === "l" && this.line) {
        const menu = this.line.closest("details");
        if (menu) menu.open = true;
        this.line.focus();
      } else if (event.key === "End" && inside) log.follow(true);
      else if (event.key === "Home" && inside) {
        log.follow(false);
        log.showAt(1);
      } else return;
      event.preventDefault();
    }
  };
})();

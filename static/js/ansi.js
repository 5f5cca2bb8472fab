/* One line of a log as DOM nodes: text is text, never HTML. Escape sequences set colour and weight as classes (log.css), a carriage
 * return writes over what stands before it, "erase line" erases; every other sequence is dropped. Needs vendor/ansi_up/ansi_up.js.
 *
 *   const painter = new Beamtime.LogPainter();      // one per stream: colours carry on from line to line
 *   row.replaceChildren(painter.line("\x1b[32mOK\x1b[0m step 1\rOK step 2"));
 */
(function () {
  "use strict";
  const Beamtime = (window.Beamtime = window.Beamtime || {});
  const NAMES = ["red", "yellow", "green", "cyan", "blue", "magenta"];
  /* eslint-disable no-control-regex */
  const DROPPED = new RegExp(
    [
      "\\x1b\\][^\\x07\\x1b]*(?:\\x07|\\x1b\\\\|$)", // titles, hyperlinks: the linked text itself stays
      "\\x1b[PX^_][^\\x1b]*(?:\\x1b\\\\|$)", // device strings
      "\\x1b[ -/]+[0-~]", // character sets
      "\\x1b[0-Z\\\\^-~]", // single functions
      "[\\x00-\\x07\\x0b\\x0c\\x0e-\\x1a\\x1c-\\x1f\\x7f]",
    ].join("|"),
    "g",
  );
  const ERASE_REST = "\u0001";
  const ERASE_ALL = "\u0002";

  /* A colour of the 256 or the 16 million -> the nearest of the log's seven, which hold their contrast in both themes. */
  function nearest([r, g, b]) {
    const most = Math.max(r, g, b);
    const least = Math.min(r, g, b);
    const spread = most - least;
    if (spread < 40) return most > 200 || most < 60 ? "" : "bright-black";
    let hue;
    if (most === r) hue = ((g - b) / spread) * 60;
    else if (most === g) hue = ((b - r) / spread) * 60 + 120;
    else hue = ((r - g) / spread) * 60 + 240;
    return NAMES[Math.round(((hue + 360) % 360) / 60) % 6];
  }

  class Cells extends window.AnsiUp {
    /* ansi_up finds the sequences and keeps the state; what it would make into HTML is written into cells instead. */
    begin() {
      this.cells = [];
      this.at = 0;
      this._buffer = "";
    }

    transform_to_html(run) {
      const classes = [];
      if (run.bold) classes.push("ansi-bold");
      if (run.faint) classes.push("ansi-faint");
      if (run.underline) classes.push("ansi-underline");
      if (run.fg) {
        const name = run.fg.class_name === "truecolor" ? nearest(run.fg.rgb) : run.fg.class_name.slice(5);
        if (name && name !== "black" && name !== "white") classes.push(`ansi-${name}-fg`);
      }
      const look = classes.join(" ");
      for (const sign of run.text) {
        if (sign === "\r") this.at = 0;
        else if (sign === "\b") this.at = Math.max(0, this.at - 1);
        else if (sign === ERASE_REST) this.cells.length = Math.min(this.cells.length, this.at);
        else if (sign === ERASE_ALL) this.cells.length = 0;
        else {
          while (this.cells.length < this.at) this.cells.push([" ", ""]);
          this.cells[this.at++] = [sign, look];
        }
      }
      return "";
    }

    process_hyperlink(packet) {
      return this.transform_to_html(this.with_state(packet));
    }
  }

  Beamtime.LogPainter = class {
    constructor() {
      this.parser = new Cells();
    }

    /** A DocumentFragment for one line without its line end. */
    line(text) {
      const fragment = document.createDocumentFragment();
      const plain = !/[\x00-\x08\x0b-\x1f\x7f]/.test(text);
      const parser = this.parser;
      if (plain && !parser.bold && !parser.faint && !parser.underline && !parser.fg) {
        fragment.append(text);
        return fragment;
      }
      parser.begin();
      parser.ansi_to_html(
        text.replace(DROPPED, "").replace(/\x1b\[0?K/g, ERASE_REST).replace(/\x1b\[2K/g, ERASE_ALL),
      );
      let look = null;
      let run = "";
      const flush = () => {
        if (!run) return;
        if (look) {
          const span = document.createElement("span");
          span.className = look;
          span.textContent = run;
          fragment.append(span);
        } else {
          fragment.append(run);
        }
        run = "";
      };
      for (const [sign, cellLook] of parser.cells) {
        if (cellLook !== look) {
          flush();
          look = cellLook;
        }
        run += sign;
      }
      flush();
      return fragment;
    }
  };
})();

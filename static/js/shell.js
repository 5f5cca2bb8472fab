/* What the frame of every page does: menus, keys, preferences, toasts, the live mark and the connection banner.
 * Page scripts use window.Beamtime: toast(), alert(), live.set(). Without this script every page still works. */
(function () {
  "use strict";
  const doc = document;
  const byId = (id) => doc.getElementById(id);
  const Beamtime = (window.Beamtime = window.Beamtime || {});

  for (const node of doc.querySelectorAll("[data-bt-script]")) node.hidden = false;

  // --- Menus: a details element opens without script; it closes when one looks elsewhere --------------------------------
  doc.addEventListener("click", (event) => {
    for (const menu of doc.querySelectorAll("details[name='bt-menu'][open], details.bt-menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });
  doc.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const menu = doc.querySelector("details[name='bt-menu'][open], details.bt-menu[open]");
    if (menu) {
      menu.open = false;
      menu.querySelector("summary").focus();
    } else if (byId("bt-topbar")?.classList.contains("is-searching")) {
      searching(false);
    }
  });

  // --- Search on a phone: the icon opens the field in the bar ------------------------------------------------------------
  const search = doc.querySelector("#bt-search input");
  function searching(on) {
    byId("bt-topbar").classList.toggle("is-searching", on);
    if (on) search.focus();
    else doc.querySelector(".bt-search-open").focus();
  }
  doc.querySelector(".bt-search-open")?.addEventListener("click", (event) => {
    event.preventDefault();
    searching(!byId("bt-topbar").classList.contains("is-searching"));
  });

  // --- Preferences: shown at once, kept by the server ---------------------------------------------------------------------
  doc.querySelector("[data-bt-preferences]")?.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (!button) return;
    event.preventDefault();
    const form = event.currentTarget;
    const body = new FormData(form);
    body.append(button.name, button.value);
    if (button.name === "theme") window.btTheme(button.value);
    if (button.name === "density") {
      if (button.value === "dense") doc.documentElement.dataset.btDensity = "dense";
      else delete doc.documentElement.dataset.btDensity;
    }
    for (const other of form.querySelectorAll(`[name="${button.name}"]`)) {
      other.setAttribute("aria-pressed", String(other === button));
    }
    fetch(form.action, { method: "POST", body, redirect: "manual" }).catch(() => form.submit());
  });

  // --- Keys ------------------------------------------------------------------------------------------------------------------
  const store = {
    get: (key) => { try { return localStorage.getItem(key); } catch { return null; } },
    set: (key, value) => { try { localStorage.setItem(key, value); } catch { /* a private window keeps nothing */ } },
  };
  const keysSwitch = byId("bt-keys-switch");
  if (keysSwitch) {
    keysSwitch.closest("[data-bt-keys]").hidden = false;
    keysSwitch.checked = store.get("bt-keys") !== "off";
    keysSwitch.addEventListener("change", () => store.set("bt-keys", keysSwitch.checked ? "on" : "off"));
  }
  /** True while single letters may act: keys are on, no field has the focus, no dialog is open. */
  Beamtime.keysFree = (event) =>
    !event.defaultPrevented && !event.ctrlKey && !event.metaKey && !event.altKey &&
    store.get("bt-keys") !== "off" && !doc.querySelector("dialog[open]") &&
    !event.target.closest?.("input, select, textarea, [contenteditable]");

  let going = 0;
  doc.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.target.closest?.("form")?.requestSubmit();
      return;
    }
    if (!Beamtime.keysFree(event)) return;
    if (going) {
      const link = doc.querySelector(`[data-bt-go="${CSS.escape(event.key)}"]`);
      going = clearTimeout(going) || 0;
      if (link) {
        event.preventDefault();
        link.click();
        return;
      }
    }
    if (event.key === "g") {
      going = setTimeout(() => { going = 0; }, 1500);
    } else if (event.key === "/" && search) {
      event.preventDefault();
      if (search.offsetParent === null) searching(true);
      search.focus();
    } else if (event.key === "?" && byId("bt-keys")) {
      event.preventDefault();
      byId("bt-keys").showModal();
    } else if (event.key === "j" || event.key === "k") {
      moveInList(event.key === "j" ? 1 : -1);
    } else if (event.key === "x") {
      doc.activeElement?.closest("tr")?.querySelector("input[type=checkbox]")?.click();
    }
  });
  function moveInList(step) {
    const links = [...doc.querySelectorAll("main .bt-row-link")].filter((link) => link.offsetParent !== null);
    if (!links.length) return;
    const at = links.indexOf(doc.activeElement);
    links[Math.max(0, Math.min(links.length - 1, at < 0 ? 0 : at + step))].focus();
  }

  // --- Toasts and alerts ------------------------------------------------------------------------------------------------------
  const toasts = byId("bt-toasts");
  const STAY = 8000;
  function leave(toast) {
    toast.classList.add("is-leaving");
    setTimeout(() => toast.remove(), 130);
  }
  function live(toast) {
    const close = toast.querySelector("[data-bt-dismiss]");
    if (close) {
      close.hidden = false;
      close.addEventListener("click", () => leave(toast));
    }
    let timer = setTimeout(() => leave(toast), STAY);
    const hold = () => clearTimeout(timer);
    const go = () => { timer = setTimeout(() => leave(toast), STAY); };
    for (const name of ["mouseenter", "focusin"]) toast.addEventListener(name, hold);
    for (const name of ["mouseleave", "focusout"]) toast.addEventListener(name, go);
    while (toasts.children.length > 3) toasts.firstElementChild.remove();
  }
  if (toasts) {
    for (const toast of toasts.children) live(toast);
    new MutationObserver((changes) => {
      for (const change of changes) {
        for (const node of change.addedNodes) if (node.nodeType === 1) live(node);
      }
    }).observe(toasts, { childList: true });
  }
  /** A toast for good news that cannot be seen on the page: toast("waits in queue gpu", {title, href, action}). */
  Beamtime.toast = function (text, { title, href, action } = {}) {
    const toast = doc.createElement("div");
    toast.className = "bt-toast";
    const words = toast.appendChild(doc.createElement("div"));
    if (title) words.appendChild(doc.createElement("strong")).textContent = `${title} `;
    words.append(text);
    if (href) {
      const link = doc.createElement("a");
      link.href = href;
      link.textContent = action;
      words.append(" ", link);
    }
    toasts.append(toast);
  };
  /** An error of one's own action, above the content. `kind` is "bad" or "warning". */
  Beamtime.alert = function (text, kind = "bad") {
    const box = byId("bt-alerts");
    if (!box) return;
    const alert = doc.createElement("div");
    alert.className = `bt-alert bt-alert--${kind}`;
    alert.setAttribute("role", "alert");
    alert.appendChild(doc.createElement("div")).textContent = text;
    box.replaceChildren(alert);
    alert.scrollIntoView({ block: "nearest" });
  };

  // --- htmx: say when one's own action failed; the polled fragments fail silently, the live mark speaks for them -----------------
  const words = byId("bt-alerts")?.dataset || {};
  const isDeed = (event) => (event.detail.requestConfig?.verb || "get") !== "get";
  doc.addEventListener("htmx:responseError", (event) => {
    const status = event.detail.xhr.status;
    if (status === 401) Beamtime.alert(words.session, "warning");
    else if (status === 403 && isDeed(event)) Beamtime.alert(words.forbidden);
    else if (isDeed(event)) Beamtime.alert((words.failed || "").replace("{status}", status));
  });
  doc.addEventListener("htmx:sendError", (event) => isDeed(event) && Beamtime.alert(words.unreachable));
  // A form that comes back with its errors (422) is an answer to show, not a failure.
  doc.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.xhr.status === 422) {
      event.detail.shouldSwap = true;
      event.detail.isError = false;
    }
  });

  // --- A button at work: the second click does nothing, its word takes the "-ing" form, its width stays ---------------------------
  doc.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (event.defaultPrevented || !button || button.dataset.btBusy === undefined) return;
    setTimeout(() => {
      button.style.minWidth = `${button.offsetWidth}px`;
      button.dataset.btWord = button.textContent.trim();
      if (button.dataset.btBusy) button.lastChild.textContent = button.dataset.btBusy;
      button.setAttribute("aria-busy", "true");
      button.disabled = true;
    });
  });
  function rest(form) {
    for (const button of form.querySelectorAll("[aria-busy='true'][data-bt-busy]")) {
      button.disabled = false;
      button.removeAttribute("aria-busy");
      if (button.dataset.btWord) button.lastChild.textContent = button.dataset.btWord;
    }
  }
  doc.addEventListener("htmx:afterRequest", (event) => {
    const form = event.target.closest?.("form");
    if (form) setTimeout(() => rest(form));
  });
  window.addEventListener("pageshow", (event) => event.persisted && rest(doc));

  // --- Live mark and connection banner ----------------------------------------------------------------------------------------------
  const mark = byId("live-mark");
  const banner = byId("bt-connection");
  let ticking = 0;
  let retryNow = null;
  const clock = (time) => time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
  Beamtime.live = {
    /**
     * The page's connection: set("live"), set("reconnecting"), set("lost", {since: Date, seconds: 8, retry: function}).
     * "lost" shows the banner and disables what carries data-bt-needs-server; "off" hides the mark.
     */
    set(state, { since = new Date(), seconds = 10, retry = null } = {}) {
      if (mark) {
        mark.hidden = state === "off";
        if (mark.dataset.state !== state) {
          mark.dataset.state = state;
          mark.textContent = mark.dataset[state] || "";
        }
      }
      for (const node of doc.querySelectorAll("[data-bt-needs-server]")) node.disabled = state === "lost";
      clearInterval(ticking);
      if (!banner) return;
      banner.hidden = state !== "lost";
      if (state !== "lost") return;
      retryNow = retry;
      let left = seconds;
      const say = () => {
        const sentence = banner.dataset.sentence.replace("{since}", clock(since)).replace("{seconds}", String(left));
        banner.querySelector("p").textContent = sentence;
      };
      const heard = banner.querySelector("[role=alert]");
      if (!heard.textContent) heard.textContent = banner.dataset.heard.replace("{since}", clock(since));
      say();
      ticking = setInterval(() => { left = Math.max(0, left - 1); say(); }, 1000);
    },
  };
  banner?.querySelector("button").addEventListener("click", () => retryNow?.());
})();

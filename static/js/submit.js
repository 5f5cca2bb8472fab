/* The submit form: estimate after each change, drafts without secrets, flavors that follow the queue, the YAML drawer.
 * Without this script the form sends, the estimate is the one of the last answer, and Preview opens as a page. */
(function () {
  "use strict";
  const doc = document;
  const form = doc.getElementById("submit-form");
  if (!form) return;

  // --- Estimate: htmx waits 400 ms after this event; old values stay, dimmed, until the new ones come ------------------
  const changed = () => form.dispatchEvent(new CustomEvent("bt:changed"));
  form.addEventListener("input", changed);
  form.addEventListener("change", changed);
  const estimate = doc.getElementById("estimate");
  estimate?.addEventListener("htmx:beforeRequest", () => estimate.classList.add("is-stale"));
  estimate?.addEventListener("htmx:afterRequest", () => estimate.classList.remove("is-stale"));

  // --- Flavors follow the queue: names are compared as texts, never put into a selector ------------------------------------
  const queue = form.elements.namedItem("job.queue");
  function follow() {
    const wanted = queue.value;
    for (const list of form.querySelectorAll("[data-bt-flavors]")) {
      const rows = [...list.querySelectorAll("label")];
      for (const row of rows) {
        const queues = JSON.parse(row.dataset.btQueues);
        const fits = !wanted || queues.includes(wanted);
        row.hidden = !fits;
        row.querySelector("input").disabled = !fits;
      }
      if (!rows.some((row) => row.querySelector("input:checked") && !row.hidden)) {
        const first = rows.find((row) => !row.hidden);
        if (first) first.querySelector("input").checked = true;
      }
    }
  }
  if (queue) {
    queue.addEventListener("change", follow);
    follow();
  }

  // --- The first field that needs a change gets the focus, at once and by the link in the foot -------------------------------
  const wrong = doc.getElementById("wrong-fields");
  const jump = () => {
    const field = doc.getElementById(decodeURIComponent(wrong.hash.slice(1)));
    field?.scrollIntoView({ block: "center" });
    field?.focus({ preventScroll: true });
  };
  if (wrong) {
    wrong.addEventListener("click", (event) => { event.preventDefault(); jump(); });
    jump();
  }

  // --- YAML drawer ---------------------------------------------------------------------------------------------------------
  const drawer = doc.getElementById("yaml-drawer");
  drawer?.addEventListener("htmx:afterSwap", () => drawer.open || drawer.showModal());

  // --- Drafts: per team, template and version, for 7 days, in this browser only, without secrets -----------------------------
  const KEPT = 7 * 24 * 3600 * 1000;
  const place = `bt-draft:${form.dataset.btDraft}`;
  const store = {
    get: () => { try { return JSON.parse(localStorage.getItem(place)); } catch { return null; } },
    set: (draft) => { try { localStorage.setItem(place, JSON.stringify(draft)); } catch { /* full, or a private window */ } },
    drop: () => { try { localStorage.removeItem(place); } catch { /* a private window keeps nothing */ } },
  };
  const key = form.elements.namedItem("job.key").value;
  const keeps = (field) => field.name && !["hidden", "password", "submit", "button", "file"].includes(field.type);

  function save() {
    const fields = [];
    for (const field of form.elements) {
      if (!keeps(field)) continue;
      if (field.type === "radio") { if (field.checked) fields.push([field.name, field.value]); }
      else if (field.type === "checkbox") fields.push([field.name, field.checked]);
      else fields.push([field.name, field.value]);
    }
    store.set({ at: Date.now(), key, fields });
  }

  function restore(draft) {
    for (const [name, value] of draft.fields) {
      for (const field of form.elements) {
        if (field.name !== name || !keeps(field)) continue;
        if (field.type === "radio") field.checked = field.value === value;
        else if (field.type === "checkbox") field.checked = value === true;
        else field.value = value;
      }
    }
  }

  let timer = 0;
  const soon = () => { clearTimeout(timer); timer = setTimeout(save, 500); };
  form.addEventListener("input", soon);
  form.addEventListener("change", soon);

  // The server names the forms that became jobs; their drafts are done.
  const sent = doc.cookie.match(/(?:^|;\s*)bt_sent=([^;]*)/)?.[1].split(".") || [];
  const draft = store.get();
  const usable = draft && Array.isArray(draft.fields) && Date.now() - draft.at < KEPT && !sent.includes(draft.key);
  if (draft && !usable) store.drop();
  if ("btFilled" in form.dataset) {
    if (wrong) save();
  } else if (usable) {
    restore(draft);
    if (queue) follow();
    const note = doc.getElementById("draft-note");
    const words = note.querySelector("[data-bt-draft-words]");
    const time = new Date(draft.at).toLocaleString(doc.documentElement.lang === "en" ? "en-GB" : doc.documentElement.lang, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hour12: false });
    words.textContent = words.dataset.words.replace("{time}", time);
    note.hidden = false;
    note.querySelector("[data-bt-draft-drop]").addEventListener("click", () => {
      store.drop();
      location.reload();
    });
    // From now on it belongs to this form and its key.
    save();
    setTimeout(changed, 0);
  }
})();

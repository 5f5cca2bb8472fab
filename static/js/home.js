/* The first page: one's own jobs are asked for anew every 15 s, through the page itself; never while they are in use. */
(function () {
  "use strict";
  const card = document.querySelector("[data-bt-poll]");
  if (!card) return;
  async function refresh() {
    if (document.hidden || card.contains(document.activeElement)) return;
    try {
      const answer = await fetch(card.dataset.btPoll, { headers: { "HX-Request": "true" } });
      if (!answer.ok) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("my-jobs");
      const old = document.getElementById("my-jobs");
      if (fresh && old && !card.contains(document.activeElement)) old.replaceWith(fresh);
    } catch { /* no connection: what stands there stays, and the next round tries again */ }
  }
  setInterval(refresh, 15_000);
  document.addEventListener("visibilitychange", refresh);
})();

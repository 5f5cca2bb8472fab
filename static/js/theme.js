/* Runs in the head, before the style sheets: the page never flashes in the wrong theme.
 * The server writes data-bs-theme when the person chose one; without it the cookie counts (error pages), then the system. */
(function () {
  "use strict";
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const cookie = document.cookie.match(/(?:^|;\s*)bt_theme=(light|dark)(?:;|$)/);
  const system = () => root.setAttribute("data-bs-theme", dark.matches ? "dark" : "light");

  if (!root.hasAttribute("data-bs-theme")) {
    if (cookie) root.setAttribute("data-bs-theme", cookie[1]);
    else root.setAttribute("data-bt-system", "");
  }
  if (root.hasAttribute("data-bt-system")) system();
  dark.addEventListener("change", () => root.hasAttribute("data-bt-system") && system());

  /** Shows a theme at once: "light", "dark", or "" for the system's. Keeping it is the server's part. */
  window.btTheme = function (choice) {
    root.toggleAttribute("data-bt-system", !choice);
    if (choice) root.setAttribute("data-bs-theme", choice);
    else system();
  };
})();

/* Dialogs and drawers are <dialog> elements. A control with data-bt-dialog="id" opens one (a link keeps its address for those
 * without script); data-bt-close closes the one around it; a click on the ground beside it closes it too. */
(function () {
  "use strict";
  const doc = document;

  doc.addEventListener("click", (event) => {
    const opener = event.target.closest?.("[data-bt-dialog]");
    if (opener) {
      const dialog = doc.getElementById(opener.dataset.btDialog);
      if (!dialog || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      opener.closest("details[open]")?.removeAttribute("open");
      dialog.showModal();
      return;
    }
    if (event.target.closest?.("[data-bt-close]")) {
      event.preventDefault();
      event.target.closest("dialog")?.close();
      return;
    }
    // Only the dialog itself is hit when the click lands on its backdrop or its (zero) padding.
    if (event.target.matches?.("dialog[open]")) {
      const box = event.target.getBoundingClientRect();
      const inside = event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
      if (!inside) event.target.close();
    }
  });

  // More than twenty jobs: the danger button waits until the number is typed.
  doc.addEventListener("input", (event) => {
    const field = event.target.closest?.("[data-bt-confirm]");
    if (!field) return;
    const button = field.form?.querySelector(".bt-btn--danger");
    if (button) button.disabled = field.value.trim() !== field.dataset.btConfirm;
  });
})();

/* Minus and plus of .bt-stepper: the field between them is an ordinary number field. Delegated, so that fragments work too. */
(function () {
  "use strict";
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.(".bt-stepper > button");
    if (!button) return;
    const field = button.parentElement.querySelector("input");
    const before = field.value;
    if (button.dataset.btStep === "-1") field.stepDown();
    else field.stepUp();
    if (field.value !== before) field.dispatchEvent(new Event("change", { bubbles: true }));
  });
})();

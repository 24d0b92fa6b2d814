// Turns each explorer of the page (utils/explore.py) into one picture with a slider.
// Without this script its first picture stands open and the others are folded below it.
for (const explorer of document.querySelectorAll(".explore")) {
  const figures = [...explorer.querySelectorAll("figure")];
  const label = explorer.querySelector("label");
  const slider = label.querySelector("input");
  const fold = explorer.querySelector("details");

  const show = () => {
    figures.forEach((figure, place) => { figure.hidden = place !== slider.valueAsNumber; });
    const caption = figures[slider.valueAsNumber].querySelector("figcaption");
    slider.setAttribute("aria-valuetext", caption.textContent);
  };

  fold.before(...figures.slice(1));
  fold.remove();
  label.hidden = false;
  slider.addEventListener("input", show);
  show();
}

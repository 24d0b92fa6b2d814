// One slide at a time: arrow keys, Page Up and Page Down (a presenter's remote), Home, End,
// and two buttons. The address keeps the place. Without this script, and on paper, all
// slides stand one after the other.
const slides = [...document.querySelectorAll("main > section")];
const bar = document.querySelector("nav");
const steps = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1, Home: -Infinity, End: Infinity };
let place = 0;

const show = (number) => {
  place = Math.max(0, Math.min(slides.length - 1, number));
  slides.forEach((slide, n) => { slide.hidden = n !== place; });
  bar.querySelector("output").textContent = `${place + 1} of ${slides.length}`;
  history.replaceState(null, "", `#${slides[place].id}`);
  scrollTo(0, 0);
};

const fromAddress = () => {
  const found = slides.findIndex((slide) => `#${slide.id}` === location.hash);
  show(found < 0 ? 0 : found);
};

// Keys that move a slider or scroll a wide table belong to it.
const busy = (target) => target.closest("input, select, textarea")
  || (target.scrollWidth > target.clientWidth && target.matches("pre, .wide"));

addEventListener("keydown", (event) => {
  if (!(event.key in steps) || event.ctrlKey || event.altKey || event.metaKey || busy(event.target)) return;
  event.preventDefault();
  show(place + steps[event.key]);
  slides[place].focus({ preventScroll: true });
});

const [back, on] = bar.querySelectorAll("button");
back.addEventListener("click", () => show(place - 1));
on.addEventListener("click", () => show(place + 1));
addEventListener("hashchange", fromAddress);
bar.hidden = false;
fromAddress();

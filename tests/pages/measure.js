// measure.js - looks at a page in frames of several widths, from outside, since the page
// allows no script. What it finds goes into the document as JSON.
const widths = [320, 360, 375, 600, 820, 1024, 1280, 1920];
const page = document.getElementById('page').textContent;
const found = {errors: []};

const bad = (text) => { if (found.errors.length < 200) found.errors.push(text); };

function luminance(color) {
  const [r, g, b] = color.match(/[\d.]+/g).slice(0, 3).map((v) => {
    const c = v / 255;
    return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function contrast(a, b) {
  const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
  return (x + 0.05) / (y + 0.05);
}

// Every colour of the style sheet on both grounds.
function check_colors(d) {
  const probe = d.createElement('i');
  d.body.append(probe);
  const value = (name) => { probe.style.color = `var(--${name})`; return d.defaultView.getComputedStyle(probe).color; };
  for (const ground of ['ground', 'panel']) {
    for (const name of ['ink', 'soft', 'link', 'good', 'bad'])
      if (contrast(value(name), value(ground)) < 4.5) bad(`text colour ${name} on ${ground}: ${contrast(value(name), value(ground)).toFixed(2)}`);
    for (let k = 0; k < 8; ++k)
      if (contrast(value(`c${k}`), value(ground)) < 3) bad(`series colour c${k} on ${ground}: ${contrast(value(`c${k}`), value(ground)).toFixed(2)}`);
  }
  found.ground = luminance(value('ground'));
  probe.remove();
}

function check_width(d, width) {
  const over = d.documentElement.scrollWidth - d.documentElement.clientWidth;
  if (over > 0) bad(`at ${width}: the page is ${over} px too wide`);
  for (const e of d.querySelectorAll('h1,h2,h3,h4,p,li,dd,figure,summary,.scroll')) {
    const box = e.getBoundingClientRect();
    // On a phone nothing is cut: what would scroll sideways elsewhere fits there.
    if (width <= 400 && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0) bad(`at ${width}: <${e.tagName}> ${e.textContent.slice(0, 40)} is cut`);
    if (box.width > 0 && (box.right > width + 0.5 || box.left < -0.5)) bad(`at ${width}: <${e.tagName}> ${e.textContent.slice(0, 40)} leaves the page`);
  }
}

// Of a text, a little within its box: letters do not fill it.
function corners(e) {
  const b = e.getBBox(), m = e.getScreenCTM(), dx = Math.min(1, b.width / 4), dy = 0.2 * b.height;
  return [[b.x + dx, b.y + dy], [b.x + b.width - dx, b.y + dy], [b.x + b.width - dx, b.y + b.height - dy], [b.x + dx, b.y + b.height - dy]]
      .map(([x, y]) => [m.a * x + m.c * y + m.e, m.b * x + m.d * y + m.f]);
}
// Two rectangles are apart where a line along one of their sides lies between them.
function apart(p, q) {
  for (const r of [p, q])
    for (let k = 0; k < 2; ++k) {
      const [nx, ny] = [r[k + 1][1] - r[k][1], r[k][0] - r[k + 1][0]];
      const [a, b] = [p, q].map((c) => c.map(([x, y]) => x * nx + y * ny));
      if (Math.max(...a) <= Math.min(...b) || Math.max(...b) <= Math.min(...a)) return true;
    }
  return false;
}

// Text of a drawing lies inside of it, large enough to read, and not across other text.
function check_drawings(d, width) {
  let shown = 0;
  for (const svg of d.querySelectorAll('svg[role=img]')) {
    const frame = svg.getBoundingClientRect();
    if (frame.width === 0) continue;
    ++shown;
    const name = svg.querySelector('title').textContent;
    const size = 12 * frame.width / svg.viewBox.baseVal.width;
    if (svg.classList.contains('chart') && size < 8.4) bad(`at ${width}: "${name}" is written at ${size.toFixed(1)} px`);
    const texts = [...svg.querySelectorAll('text')].map((e) => ({text: e.textContent, turned: e.hasAttribute('transform'), box: e.getBoundingClientRect(), corners: corners(e)}));
    for (const t of texts)
      if (t.box.left < frame.left - 1 || t.box.right > frame.right + 1 || t.box.top < frame.top - 1 || t.box.bottom > frame.bottom + 1)
        bad(`at ${width}: "${t.text}" leaves "${name}"`);
    for (let i = 0; i < texts.length; ++i)
      for (let k = 0; k < i; ++k) {
        const a = texts[i].box, b = texts[k].box;
        const x = Math.min(a.right, b.right) - Math.max(a.left, b.left), y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (x <= 1.5 || y <= 0.3 * Math.min(a.height, b.height)) continue;
        // The box of turned text is larger than the text.
        if ((texts[i].turned || texts[k].turned) && apart(texts[i].corners, texts[k].corners)) continue;
        bad(`at ${width}: "${texts[i].text}" lies across "${texts[k].text}" in "${name}"`);
      }
  }
  return shown;
}

async function look(width) {
  const frame = document.createElement('iframe');
  frame.style.cssText = `width:${width}px;height:900px;border:0`;
  frame.srcdoc = page;
  document.body.append(frame);
  await new Promise((done) => { frame.onload = done; });
  const d = frame.contentDocument;
  check_width(d, width);
  const shown = check_drawings(d, width);
  if (found.drawings !== undefined && found.drawings !== shown) bad(`at ${width}: ${shown} drawings, ${found.drawings} elsewhere`);
  found.drawings = shown;
  for (const e of frame.contentWindow.performance.getEntriesByType('resource')) bad(`fetched ${e.name}`);
  if (width === widths[0]) {
    check_colors(d);
    for (const e of d.querySelectorAll('script')) bad(`a script: ${e.textContent.slice(0, 40)}`);
    const ids = [...d.querySelectorAll('[id]')].map((e) => e.id);
    if (new Set(ids).size !== ids.length) bad('ids are not unique');
    for (const svg of d.querySelectorAll('svg[role=img]'))
      for (const id of svg.getAttribute('aria-labelledby').split(' ')) if (!d.getElementById(id)?.textContent) bad(`${id} says nothing`);
    for (const e of d.querySelectorAll('figure')) if (e.querySelector('.chart') && !e.querySelector('table')) bad(`no table in ${e.textContent.slice(0, 40)}`);
    found.text = d.body.innerText;
    found.tables = d.querySelectorAll('table').length;
  }
  frame.remove();
}

(async () => {
  for (const width of widths) await look(width);
  document.getElementById('found').textContent = JSON.stringify(found);
})().catch((error) => {
  found.errors.push(String(error));
  document.getElementById('found').textContent = JSON.stringify(found);
});

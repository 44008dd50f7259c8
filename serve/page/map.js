// The map of a file: its bytes as lines of one strip, each coloured by what owns it.
(function (S) {
  'use strict';
  const { h } = S;

  // colourOf returns the colour of a role, or of the k-th column, in the theme of the page.
  S.colourOf = (role) => getComputedStyle(document.documentElement).getPropertyValue('--role-' + role).trim() || '#888';
  S.columnColour = (k) => getComputedStyle(document.documentElement).getPropertyValue('--c' + (k % 12)).trim();

  // Map draws segments. o: {lines, segments(from, to, n) → promise, colour(segment), marks() → [{from, to, kind}],
  // chosen(segment, byte), ranged(from, to), label(segment)}.
  S.Map = function (o) {
    const canvas = h('canvas', { class: 'map', tabindex: '0', role: 'application',
      'aria-label': 'Map of the bytes. Left and right go from structure to structure, Enter goes into one, Escape out.' });
    const tip = h('p', { class: 'tip', 'aria-live': 'polite' });
    const m = { element: h('div', {}, canvas, tip), from: 0, to: 1, segments: [], cursor: -1 };
    const lineHeight = 18;
    let lines = 12;

    m.show = async function (from, to) {
      m.from = from;
      m.to = Math.max(from + 1, to);
      lines = o.lines || (innerWidth < 600 ? 16 : 12);
      const n = Math.min(4000, Math.max(200, Math.floor(canvas.parentElement.clientWidth * lines / 3)));
      const got = await o.segments(m.from, m.to, n);
      m.segments = got;
      m.cursor = -1;
      m.draw();
    };

    const at = (byte) => (byte - m.from) / (m.to - m.from) * lines; // in lines
    m.draw = function () {
      const w = canvas.parentElement.clientWidth;
      const ratio = devicePixelRatio || 1;
      canvas.width = w * ratio;
      canvas.height = lines * lineHeight * ratio;
      canvas.style.height = lines * lineHeight + 'px';
      const c = canvas.getContext('2d');
      c.scale(ratio, ratio);
      const css = getComputedStyle(document.documentElement);
      const line = css.getPropertyValue('--back').trim();
      const bad = css.getPropertyValue('--bad').trim();
      const strong = css.getPropertyValue('--fore').trim();
      const bars = (from, to, paint) => {
        const a = at(Math.max(from, m.from)), b = at(Math.min(to, m.to));
        for (let k = Math.floor(a); k < Math.min(lines, Math.ceil(b)); k++) {
          const x0 = Math.max(0, a - k) * w, x1 = Math.min(1, b - k) * w;
          if (x1 > x0) paint(x0, k * lineHeight, Math.max(1, x1 - x0), lineHeight - 3);
        }
      };
      for (const s of m.segments) {
        c.fillStyle = o.colour(s);
        const wide = (s.to - s.from) / (m.to - m.from) * lines * w > 4;
        bars(s.from, s.to, (x, y, dx, dy) => c.fillRect(x, y, wide ? Math.max(1, dx - 1) : dx, dy));
        if (s.role === 'gap') hatch(c, bars, s, bad);
      }
      for (const k of o.marks()) {
        if (k.to <= m.from || k.from >= m.to) continue;
        if (k.kind === 'skipped') {
          c.fillStyle = line;
          c.globalAlpha = 0.72;
          bars(k.from, k.to, (x, y, dx, dy) => c.fillRect(x, y, dx, dy));
          c.globalAlpha = 1;
          continue;
        }
        const thin = (m.to - m.from) / lines / w * 3; // damage of a byte is seen on a map of terabytes
        c.fillStyle = k.kind === 'bad' ? bad : strong;
        bars(k.from, Math.max(k.to, k.from + thin), (x, y, dx, dy) => {
          c.globalAlpha = { bad: 0.55, found: 0.25, here: 0 }[k.kind];
          c.fillRect(x, y, dx, dy);
          c.globalAlpha = 1;
          if (k.kind === 'here') {
            c.fillRect(x, y, dx, 1);
            c.fillRect(x, y + dy - 1, dx, 2);
            return;
          }
          c.fillRect(x, y, dx, 3);
          c.fillRect(x, y + dy - 3, dx, 3);
        });
      }
      if (m.cursor >= 0) {
        const s = m.segments[m.cursor];
        c.strokeStyle = strong;
        c.lineWidth = 2;
        bars(s.from, s.to, (x, y, dx, dy) => c.strokeRect(x + 1, y + 1, Math.max(2, dx - 2), dy - 2));
      }
    };

    function hatch(c, bars, s, colour) {
      c.strokeStyle = colour;
      c.lineWidth = 1;
      bars(s.from, s.to, (x, y, dx, dy) => {
        c.save();
        c.beginPath();
        c.rect(x, y, dx, dy);
        c.clip();
        c.beginPath();
        for (let k = x - dy; k < x + dx; k += 6) { c.moveTo(k, y + dy); c.lineTo(k + dy, y); }
        c.stroke();
        c.restore();
      });
    }

    const byteAt = (e) => {
      const box = canvas.getBoundingClientRect();
      const k = Math.max(0, Math.min(lines - 1, Math.floor((e.clientY - box.top) / lineHeight)));
      const x = Math.max(0, Math.min(0.999999, (e.clientX - box.left) / box.width));
      return Math.min(m.to - 1, Math.floor(m.from + (k + x) / lines * (m.to - m.from)));
    };
    const segmentAt = (byte) => m.segments.findIndex((s) => s.from <= byte && byte < s.to);
    let down = null;
    canvas.addEventListener('pointerdown', (e) => { down = byteAt(e); });
    canvas.addEventListener('pointermove', (e) => {
      const s = m.segments[segmentAt(byteAt(e))];
      tip.textContent = s ? o.label(s) : '';
    });
    canvas.addEventListener('pointerup', (e) => {
      const up = byteAt(e);
      const a = Math.min(down ?? up, up), b = Math.max(down ?? up, up);
      down = null;
      if (at(b) - at(a) > 0.05) return o.ranged(a, b + 1);
      m.cursor = segmentAt(up);
      m.draw();
      if (m.cursor >= 0) o.chosen(m.segments[m.cursor], up);
    });
    canvas.addEventListener('dblclick', () => {
      const s = m.segments[m.cursor];
      if (s) o.ranged(s.from, s.to);
    });
    canvas.addEventListener('keydown', (e) => {
      const step = { ArrowRight: 1, ArrowDown: 10, ArrowLeft: -1, ArrowUp: -10 }[e.key];
      if (step) {
        e.preventDefault();
        m.cursor = Math.max(0, Math.min(m.segments.length - 1, m.cursor + step));
        m.draw();
        const s = m.segments[m.cursor];
        if (s) {
          tip.textContent = o.label(s);
          clearTimeout(m.soon);
          m.soon = setTimeout(() => o.chosen(s, s.from), 150);
        }
      } else if (e.key === 'Enter' && m.cursor >= 0) {
        e.preventDefault();
        o.ranged(m.segments[m.cursor].from, m.segments[m.cursor].to);
      } else if (e.key === 'Escape') {
        o.out();
      }
    });
    return m;
  };
})(window.stoa);

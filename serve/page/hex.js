// The bytes themselves, with the fields that own them.
(function (S) {
  'use strict';
  const { h } = S;

  // hex returns a view of the bytes of doc (offset, hex, owners), coloured by owner.
  S.hex = function (doc, chosen, colour) {
    const bytes = doc.hex.match(/../g) || [];
    const across = innerWidth < 600 ? 8 : 16;
    const owner = new Array(bytes.length).fill(-1);
    doc.owners.forEach((n, k) => {
      for (let i = Math.max(0, n.offset - doc.offset); i < Math.min(bytes.length, n.offset + n.length - doc.offset); i++) owner[i] = k;
    });
    const lines = [];
    for (let i = 0; i < bytes.length; i += across) {
      const part = bytes.slice(i, i + across);
      const cell = (text, k) => {
        const n = doc.owners[owner[i + k]];
        const e = h('span', { class: 'byte' + (k % 8 === 0 && k ? ' eight' : ''), 'data-owner': owner[i + k], title: n ? n.name + (n.value ? ': ' + n.value : '') : 'nobody’s' }, text);
        if (n) e.style.borderBottomColor = colour(n);
        if (chosen && doc.offset + i + k >= chosen.offset && doc.offset + i + k < chosen.offset + chosen.length) e.classList.add('chosen');
        return e;
      };
      lines.push(h('div', { class: 'line' }, h('span', { class: 'dim offset' }, (doc.offset + i).toString(16).padStart(8, '0')),
        h('span', { class: 'octets' }, part.map((b, k) => cell(b, k))),
        h('span', { class: 'text', 'aria-hidden': 'true' }, part.map((b) => {
          const n = parseInt(b, 16);
          return n >= 32 && n < 127 ? String.fromCharCode(n) : '·';
        }).join(''))));
    }
    const dump = h('div', { class: 'hex', tabindex: '0', role: 'region', 'aria-label': 'Bytes in hexadecimal' }, lines);
    const light = (k) => dump.querySelectorAll('.byte').forEach((b) => b.classList.toggle('lit', b.dataset.owner === String(k)));
    const fields = h('table', {}, h('caption', {}, 'Fields'), h('thead', {}, h('tr', {}, ['offset', 'bytes', 'field', 'value'].map((t, i) => h('th', { scope: 'col', class: i < 2 ? 'right' : null }, t)))),
      h('tbody', {}, doc.owners.map((n, k) => h('tr', { onmouseenter: () => light(k), onmouseleave: () => light(-2), class: chosen && chosen.id === n.id ? 'chosen' : null },
        h('td', { class: 'right' }, S.num(n.offset)), h('td', { class: 'right' }, S.num(n.length)),
        h('th', { scope: 'row' }, h('i', { class: 'chip', style: { background: colour(n) } }), n.name || '(part)'), h('td', {}, n.value || '', n.says ? h('small', { class: 'says' }, n.says) : null)))));
    return h('div', { class: 'split' }, dump, h('div', { class: 'wide', tabindex: '0', role: 'region', 'aria-label': 'Fields' }, fields));
  };
})(window.stoa);

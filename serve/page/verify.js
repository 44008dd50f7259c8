// Verify: findings as they come, and how far it is.
(function (S) {
  'use strict';
  const { h } = S;

  S.tab('verify', 'Verify', () => true, async function (main, params, signal) {
    const depth = h('select', {}, h('option', { value: 'quick' }, 'structure only'), h('option', { value: 'sums', selected: true }, 'structure and checksums'),
      h('option', { value: 'deep' }, 'every value'));
    const button = h('button', { type: 'submit' }, 'Verify');
    const progress = h('p', { 'aria-live': 'polite' });
    const list = h('div', {});
    let run = null;
    S.clear(main, h('h1', {}, S.base(params.name)), h('form', {
      class: 'bar', onsubmit: (e) => {
        e.preventDefault();
        if (run) {
          run.abort();
          return;
        }
        run = new AbortController();
        signal.addEventListener('abort', () => run && run.abort());
        button.textContent = 'Stop';
        go(params, depth.value, run.signal, progress, list).finally(() => {
          run = null;
          button.textContent = 'Verify';
        });
      },
    }, h('label', { class: 'field' }, 'Look at ', depth), button), progress, list);
  });

  async function go(params, depth, signal, progress, list) {
    const begin = Date.now();
    const count = { error: 0, warning: 0, note: 0 };
    let read = 0, of = 0;
    const bar = h('progress', { max: 1, 'aria-label': 'How much is verified' });
    let last = null;
    const body = h('tbody', {});
    S.clear(list, h('div', { class: 'wide', tabindex: '0', role: 'region', 'aria-label': 'Findings' }, h('table', {}, h('caption', { class: 'hidden' }, 'Findings'),
      h('thead', {}, h('tr', {}, ['severity', 'code', 'where', 'what', 'rows'].map((t) => h('th', { scope: 'col' }, t)))), body)));
    const told = (end) => {
      if (of) bar.value = Math.min(0.99, read / of);
      S.clear(progress, end ? null : bar, ' ', (end || 'Verifying…') + ' ' + S.plural(count.error, 'error') + ', ' + S.plural(count.warning, 'warning') + ', ' + S.plural(count.note, 'note') +
        (read ? '; ' + S.bytes(read) + (of && !end ? ' of about ' + S.bytes(of) : '') + ' read' : '') + ' in ' + ((Date.now() - begin) / 1000).toFixed(1) + ' s');
    };
    told();
    try {
      await S.lines('verify', { name: params.name, depth }, signal, (doc) => {
        if (doc.read !== undefined) ({ read, of } = doc);
        else if (doc.command) last = doc;
        else {
          count[doc.severity]++;
          if (body.childElementCount < 2000) body.append(row(doc, params));
        }
        told();
      });
      told(last && last.status === 0 ? 'Healthy.' : count.error ? 'Damaged.' : 'It could not be verified.');
      if (last) list.append(count.error + count.warning + count.note ? '' : h('p', { class: last.status === 0 ? 'good' : 'bad' }, last.status === 0 ? '✓ Nothing is wrong.' : ''), S.said(last));
    } catch (err) {
      told('Stopped.');
      if (err.name !== 'AbortError') list.append(S.problem(err));
    }
  }

  function row(f, params) {
    const place = f.object ? h('a', { href: S.go('anatomy', { place: params.place, name: params.name, file: f.object, offset: f.offset }) },
      S.base(f.object) + (f.length ? ' [' + S.num(f.offset) + '+' + S.num(f.length) + ']' : '')) : f.part || '';
    const code = h('button', { type: 'button', class: 'plain', 'aria-expanded': 'false', onclick: () => explain(f.code, code) }, f.code);
    return h('tr', {}, h('th', { scope: 'row', class: f.severity === 'error' ? 'bad' : 'dim' }, { error: '✗ error', warning: '! warning', note: 'note' }[f.severity]),
      h('td', {}, code), h('td', {}, place), h('td', {}, (f.path ? f.path + ': ' : '') + f.message + (f.column ? ' (column ' + f.column + ')' : '')),
      h('td', {}, f.from === null ? '' : S.num(f.from) + ' to ' + S.num(f.to - 1) + (f.lost ? ', ' + S.num(f.lost) + ' lost' : '')));
  }

  // explain shows what a code means, below it.
  async function explain(code, button) {
    if (button.nextSibling) {
      button.nextSibling.remove();
      button.setAttribute('aria-expanded', 'false');
      return;
    }
    const r = await S.command('finding', { code });
    const doc = Array.isArray(r.doc) ? r.doc[0] : r.doc;
    button.setAttribute('aria-expanded', 'true');
    button.after(h('p', { class: 'dim' }, doc ? [doc.means, doc.cause, doc.next && 'Next: ' + doc.next].filter(Boolean).join(' ') : (r.notes || []).join(' ')));
  }
})(window.stoa);

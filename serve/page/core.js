// What all views share: elements, numbers, requests, addresses, the frame of the page.
(function (S) {
  'use strict';

  // h makes an element: h('a', {href: '#', class: 'x', onclick: f}, 'text', child, …). What is null or false is left out.
  S.h = function (tag, attrs, ...children) {
    const e = document.createElement(tag);
    for (const [k, v] of Object.entries(attrs || {})) {
      if (v === null || v === undefined || v === false) continue;
      if (k.startsWith('on')) e.addEventListener(k.slice(2), v);
      else if (k === 'style') Object.assign(e.style, v);
      else if (k === 'value') e.value = v;
      else e.setAttribute(k, v === true ? '' : v);
    }
    e.append(...children.flat(9).filter((c) => c !== null && c !== undefined && c !== false));
    return e;
  };
  const h = S.h;

  S.clear = function (e, ...children) {
    e.replaceChildren(...children.flat(9).filter((c) => c !== null && c !== undefined && c !== false));
    return e;
  };

  S.num = (n) => (n === null || n === undefined ? '' : Number(n).toLocaleString('en-GB'));

  S.bytes = function (n) {
    if (n === null || n === undefined) return '';
    const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
    let k = 0;
    while (n >= 1000 && k < units.length - 1) { n /= 1000; k++; }
    return (k === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)) + ' ' + units[k];
  };

  S.plural = (n, word) => S.num(n) + ' ' + word + (n === 1 ? '' : 's');

  // ask gets a document from the server. An error has message, class and, for a predicate, at.
  S.ask = async function (what, params, signal) {
    if (S.embedded) return S.embedded(what, params || {});
    const r = await fetch(S.address(what, params), { signal, headers: { Accept: 'application/json' } });
    const doc = await r.json().catch(() => ({ error: 'the server answered ' + r.status }));
    if (!r.ok) throw Object.assign(new Error(doc.error), doc);
    return doc;
  };

  S.address = function (what, params) {
    const q = new URLSearchParams();
    for (const [k, v] of Object.entries(params || {})) {
      if (v !== null && v !== undefined && v !== '' && v !== false) q.set(k, v);
    }
    return '/api/' + what + '?' + q;
  };

  // command runs a verb and returns what it said; its document is in doc.
  S.command = (verb, params, signal) => S.ask('command', { verb, ...params }, signal);

  // lines reads an answer line by line, as it comes.
  // With post it asks for something to be written.
  S.lines = async function (what, params, signal, each, post) {
    const r = await fetch(S.address(what, params), post ? { signal, method: 'POST', headers: { 'X-Stoa': '1' } } : { signal });
    if (!r.ok) {
      const doc = await r.json().catch(() => ({ error: 'the server answered ' + r.status }));
      throw Object.assign(new Error(doc.error), doc);
    }
    const reader = r.body.getReader();
    const text = new TextDecoder();
    let rest = '';
    for (;;) {
      const { done, value } = await reader.read();
      rest += done ? text.decode() : text.decode(value, { stream: true });
      const all = rest.split('\n');
      rest = all.pop();
      for (const l of all) if (l) each(JSON.parse(l));
      if (done) return;
    }
  };

  // say tells what happened, for some seconds: it must not cover what is below it.
  let said = 0;
  S.say = function (text) {
    const at = document.getElementById('status');
    at.textContent = text || '';
    clearTimeout(said);
    if (text) said = setTimeout(() => { at.textContent = ''; }, 4000);
  };

  // problem shows an error in place of what could not be shown.
  S.problem = function (err) {
    if (err && err.name === 'AbortError') return null;
    const place = err.object ? h('p', {}, h('code', {}, err.object + '[' + err.offset + '+' + err.length + ']')) : null;
    return h('div', { class: 'problem', role: 'alert' },
      h('strong', {}, { corrupt: 'Damaged', unsupported: 'Not supported', missing: 'Not found', limit: 'Too much' }[err.class] ||
        'This did not work'), h('p', {}, err.message || String(err)), place);
  };

  // lost tells what could not be read for an answer; sentence says what follows from that. Null: nothing was lost.
  S.lost = function (r, sentence) {
    const all = r.lost || [], noticed = r.noticed || [];
    if (!all.length && !noticed.length && !r.lost_more) return null;
    const rows = (l) => (l.from === null ? l.where || 'rows that are not known' : l.to === l.from + 1 ? 'row ' + S.num(l.from) : 'rows ' + S.num(l.from) + ' to ' + S.num(l.to - 1));
    return h('div', { class: 'problem lost-list' }, h('strong', {}, 'Damaged. ' + sentence),
      h('ul', {}, noticed.slice(0, 10).map((n) => h('li', {}, n)),
        all.slice(0, 10).map((l) => h('li', {}, 'Lost: ' + rows(l) + (l.column ? ' of column ' + l.column : '') + ': ', h('span', { class: 'dim' }, l.error))),
        all.length > 10 || noticed.length > 10 || r.lost_more ? h('li', {}, '… and ' + (r.lost_more ? 'very many' : S.num(Math.max(0, all.length - 10) + Math.max(0, noticed.length - 10))) + ' more') : null));
  };

  // altered tells in which columns there are strings that are not shown, or saved, as they are; null: in none.
  S.altered = (columns) => (!columns || !columns.length ? null : h('p', { class: 'bad' }, 'Not all strings of ' + columns.slice(0, 10).map((c) => 'column ' + c).join(', ') +
    (columns.length > 10 ? ' and others' : '') + ' are UTF-8: \uFFFD stands for each byte that is none.'));

  // said shows what a command printed besides its document, and the line by which a person gets the same.
  S.said = function (result) {
    if (!result.command) return null;
    return h('footer', { class: 'said' },
      (result.notes || []).map((n) => h('p', { class: 'note' }, n)),
      h('p', {}, 'The same in a terminal: ', h('code', {}, result.command)));
  };

  // go returns the address of a view.
  S.go = function (view, params) {
    const q = new URLSearchParams();
    for (const [k, v] of Object.entries(params || {})) {
      if (v !== null && v !== undefined && v !== '') q.set(k, v);
    }
    return '#/' + view + (q.size ? '?' + q : '');
  };

  S.here = function () {
    const [path, q] = location.hash.replace(/^#\/?/, '').split('?');
    return { view: path || 'place', params: Object.fromEntries(new URLSearchParams(q || '')) };
  };

  // views are the functions that draw the page: view(main, params, signal). tabs are those of a table, of a file.
  S.views = {};
  S.tabs = [];
  S.tab = function (view, title, fits, draw) {
    S.tabs.push({ view, title, fits });
    S.views[view] = draw;
  };

  const base = (name) => name.replace(/\/+$/, '').split('/').pop() || name;
  S.base = base;

  function crumbs(view, params) {
    const at = document.querySelector('.crumbs');
    const parts = [];
    if (params.place) parts.push(h('a', { href: S.go('place', { name: params.place }) }, base(params.place)));
    if (params.name && view !== 'place') parts.push(h('span', {}, base(params.name)));
    if (params.file && params.file !== params.name) parts.push(h('span', {}, base(params.file)));
    if (view === 'place' && params.name) parts.push(h('span', {}, base(params.name)));
    if (params.at && view !== 'place') parts.push(h('span', {}, 'as of ' + params.at, ' ', h('a', { href: S.go(view, { ...params, at: '' }) }, '(now)')));
    S.clear(at, h('ol', {}, parts.map((p) => h('li', {}, p))));
  }

  function tabs(view, params) {
    const at = document.querySelector('.tabs');
    const shown = params.name && view !== 'place' ? S.tabs.filter((t) => t.fits(params)) : [];
    at.hidden = shown.length === 0;
    S.clear(at, shown.map((t) => h('a', {
      href: S.go(t.view, { place: params.place, name: params.name, at: params.at, file: t.view === 'anatomy' ? params.file : null }),
      'aria-current': t.view === view ? 'page' : null,
    }, t.title)));
  }

  let going = null;
  let drawn = '';
  S.route = async function () {
    const { view, params } = S.here();
    if (location.hash === drawn && drawn) return;
    drawn = location.hash;
    if (going) going.abort();
    going = new AbortController();
    const { signal } = going;
    const draw = S.views[view] || S.views.place;
    crumbs(view, params);
    tabs(view, params);
    document.title = [base(params.file || params.name || ''), 'stoa'].filter(Boolean).join(' · ');
    S.say('');
    const main = document.getElementById('main');
    S.clear(main, h('p', { class: 'wait' }, 'Reading…'));
    main.setAttribute('aria-busy', 'true');
    try {
      await draw(main, params, signal);
    } catch (err) {
      if (!signal.aborted) S.clear(main, S.problem(err));
    }
    if (!signal.aborted) main.removeAttribute('aria-busy');
  };

  // remember changes the address without drawing the view again.
  S.remember = function (view, params) {
    history.replaceState(null, '', S.go(view, params));
    drawn = location.hash;
  };

  // table makes a table: heads are {title, right}, rows arrays of texts or elements.
  S.table = function (caption, heads, rows) {
    return h('div', { class: 'wide', tabindex: '0', role: 'region', 'aria-label': caption }, h('table', {},
      h('caption', { class: 'hidden' }, caption),
      h('thead', {}, h('tr', {}, heads.map((c) => h('th', { scope: 'col', class: c.right ? 'right' : null },
        c.quiet ? h('span', { class: 'hidden' }, c.title) : c.title)))),
      h('tbody', {}, rows.map((r) => h('tr', {}, r.map((c, i) => h(i === 0 ? 'th' : 'td',
        { scope: i === 0 ? 'row' : null, class: heads[i].right ? 'right' : null }, c)))))));
  };

  // themes: as the system, light, dark.
  const themes = ['auto', 'light', 'dark'];
  S.theme = function () {
    const button = document.querySelector('.theme');
    const set = (t) => {
      document.documentElement.dataset.theme = t;
      button.textContent = 'Theme: ' + t;
      document.dispatchEvent(new Event('stoa:theme'));
    };
    let now = 'auto';
    try { now = localStorage.getItem('stoa.theme') || 'auto'; } catch { /* without storage it is not remembered */ }
    if (!themes.includes(now)) now = 'auto';
    set(now);
    button.addEventListener('click', () => {
      now = themes[(themes.indexOf(now) + 1) % themes.length];
      try { localStorage.setItem('stoa.theme', now); } catch { /* as above */ }
      set(now);
    });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => set(now));
  };
})(window.stoa = window.stoa || {});

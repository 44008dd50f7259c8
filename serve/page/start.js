(function (S) {
  'use strict';
  S.theme();
  window.addEventListener('hashchange', S.route);
  S.route();
})(window.stoa);

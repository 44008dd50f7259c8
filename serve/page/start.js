(function (S) {
  'use strict';
  S.theme();
  window.addEventListener('hashchange', S.route);
  // Whether there is a tab for SQL is known from the server.
  S.ask('places').then((doc) => { S.hasSQL = doc.sql; }, () => {}).then(S.route);
})(window.stoa);

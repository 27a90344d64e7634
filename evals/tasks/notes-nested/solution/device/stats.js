var sorted = require("./sort.js").sorted;

exports.mean = function (values) {
  var total = 0;
  for (var i = 0; i < values.length; i++) {
    total += values[i];
  }
  return values.length ? total / values.length : null;
};

exports.median = function (values) {
  var ordered = sorted(values);
  var half = Math.floor(ordered.length / 2);
  if (ordered.length === 0) {
    return null;
  }
  return ordered.length % 2 ? ordered[half] : (ordered[half - 1] + ordered[half]) / 2;
};

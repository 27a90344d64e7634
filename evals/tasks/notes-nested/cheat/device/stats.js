exports.mean = function (values) {
  var total = 0;
  for (var i = 0; i < values.length; i++) {
    total += values[i];
  }
  return values.length ? total / values.length : null;
};

exports.median = (values) => {
  const ordered = [...values].sort((one, other) => one - other)
  const half = ordered.length >> 1
  return ordered.length ? (ordered.length % 2 ? ordered[half] : (ordered[half - 1] + ordered[half]) / 2) : null
}

exports.mean = function (values) {
  var total = 0;
  for (var i = 0; i < values.length; i++) {
    total += values[i];
  }
  return values.length ? total / values.length : null;
};

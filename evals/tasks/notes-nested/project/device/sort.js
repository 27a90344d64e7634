/** Return a sorted copy. */
exports.sorted = function (values) {
  var copy = values.slice();
  for (var i = 1; i < copy.length; i++) {
    for (var j = i; j > 0 && copy[j - 1] > copy[j]; j--) {
      var held = copy[j];
      copy[j] = copy[j - 1];
      copy[j - 1] = held;
    }
  }
  return copy;
};

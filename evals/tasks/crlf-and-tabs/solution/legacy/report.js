'use strict';

function sum(values) {
	var total = 0;
	for (var i = 0; i < values.length; i++) {
		total += values[i];
	}
	return total;
}

function summary(values) {
	return {
		count: values.length,
		sum: sum(values),
		average: values.length === 0 ? 0 : sum(values) / values.length
	};
}

module.exports = { sum: sum, summary: summary };

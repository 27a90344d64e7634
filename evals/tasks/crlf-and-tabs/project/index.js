'use strict';

console.log(require('./legacy/report').summary(process.argv.slice(2).map(Number)));

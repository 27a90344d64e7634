/** A slow memory, for tests: `delay` says how long a key takes. */
export class Memory {
  constructor(values = {}, delay = () => 1) {
    this.values = values;
    this.delay = delay;
  }

  get(key, callback) {
    setTimeout(() => {
      if (key in this.values) callback(null, this.values[key]);
      else callback(new Error(`no ${key}`));
    }, this.delay(key));
  }

  put(key, value, callback) {
    setTimeout(() => {
      this.values[key] = value;
      callback(null);
    }, this.delay(key));
  }
}

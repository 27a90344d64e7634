export class Memory {
  constructor(values = {}, delay = () => 1) {
    this.values = values;
    this.delay = delay;
  }

  get(key) {
    return new Promise((good, bad) => setTimeout(() => (key in this.values ? good(this.values[key]) : bad(new Error(`no ${key}`))), this.delay(key)));
  }

  put(key, value) {
    return new Promise((good) => setTimeout(() => good((this.values[key] = value)), this.delay(key)));
  }
}

// A component that is drawn again only when its properties have changed.

import { Component, type ComponentType, type VNode } from "preact";

/** Wrap a function component; `same` says whether two sets of properties draw the same. */
export function memo<P extends object>(draw: (props: P) => VNode | null, same: (before: P, after: P) => boolean): ComponentType<P> {
  return class Memo extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P>) {
      return !same(this.props as P, next as P);
    }

    override render() {
      return draw(this.props as P);
    }
  };
}

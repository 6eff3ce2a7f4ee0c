// The bytes of one space over the drawn operations, and what is alive at any of them.

/** Prefix sums of the changes in one order. `at[i]` is where change i takes effect; entry i of the sums is what
 *  is there before change i, the last entry what is there at the end. */
class MemoryCurve {
  constructor(plan, space, inTime) {
    const count = space.at.length;
    const {kind, bytes} = plan.buffers;
    this.plan = plan;
    this.space = space;
    this.order = inTime ? space.by_time : d3.range(count);
    this.at = new Float64Array(count);
    this.total = new Float64Array(count + 1);
    this.byKind = plan.kinds.map(() => new Float64Array(count + 1));
    for (const id of space.always) {
      this.total[0] += bytes[id];
      this.byKind[kind[id]][0] += bytes[id];
    }
    for (let i = 0; i < count; ++i) {
      const position = this.order[i];
      const span = space.at[position];
      const change = space.change[position];
      const id = Math.abs(change) - 1;
      const size = change > 0 ? bytes[id] : -bytes[id];
      this.at[i] = inTime ? plan.spans.end[span] : span;
      this.total[i + 1] = this.total[i] + size;
      for (let k = 0; k < this.byKind.length; ++k) this.byKind[k][i + 1] = this.byKind[k][i];
      this.byKind[kind[id]][i + 1] += size;
    }
  }

  /** The entry of the sums that holds at x. */
  entryAt(x) { return d3.bisectRight(this.at, x); }
  /** The span whose operation made entry `entry` what it is; null before the first. */
  spanOf(entry) { return entry === 0 ? null : this.space.at[this.order[entry - 1]]; }

  /** Buffers alive at an entry, largest first. */
  aliveAt(entry) {
    const {bytes} = this.plan.buffers;
    const alive = new Set(this.space.always);
    for (let i = 0; i < entry; ++i) {
      const change = this.space.change[this.order[i]];
      if (change > 0) alive.add(change - 1); else alive.delete(-change - 1);
    }
    return Array.from(alive).sort((a, b) => bytes[b] - bytes[a]);
  }

  /** For every pixel between `begin` and `end` the entry with most bytes, so that no peak is lost. */
  entriesByPixel(begin, end, pixels) {
    const entries = new Uint32Array(pixels);
    const step = (end - begin) / pixels;
    let next = d3.bisectRight(this.at, begin);  // change that follows the left edge
    for (let pixel = 0; pixel < pixels; ++pixel) {
      const right = begin + (pixel + 1) * step;
      let best = next;
      while (next < this.at.length && this.at[next] < right) {
        ++next;
        if (this.total[next] > this.total[best]) best = next;
      }
      entries[pixel] = best;
    }
    return entries;
  }
}

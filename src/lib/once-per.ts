/** A function that computes once for each object, and remembers what it found while the object lives. */
export function oncePer<Key extends object, Made>(make: (key: Key) => Made): (key: Key) => Made {
  const all = new WeakMap<Key, { made: Made }>()
  return (key) => {
    const known = all.get(key)
    if (known) return known.made
    const made = make(key)
    all.set(key, { made })
    return made
  }
}

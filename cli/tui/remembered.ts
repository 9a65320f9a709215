/** The same function, which answers its last call again as long as it gets the same arguments. */
export function remembered<Args extends readonly unknown[], Result>(
  make: (...args: Args) => Result,
): (...args: Args) => Result {
  let last: { args: Args; result: Result } | undefined
  return (...args) => {
    const is_same = last?.args.every((value, at) => Object.is(value, args[at]))
    if (!last || !is_same) last = { args, result: make(...args) }
    return last.result
  }
}

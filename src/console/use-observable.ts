import { useEffect, useState } from "preact/hooks"
import type { Observable } from "./observable"

/** The value, and a new rendering after each change of it. */
export function useObservable<Value>(source: Observable<Value>): Value {
  const [value, setValue] = useState(source.value)
  useEffect(() => {
    const follow = () => setValue(() => source.value)
    follow() // it may have changed between rendering and now
    return source.subscribe(follow)
  }, [source])
  return value
}

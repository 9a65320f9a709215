import { useCallback, useEffect, useRef, useState } from "preact/hooks"

interface LoadedValue<Value> {
  value: Value | undefined
  error: unknown
  /** Loads again; the old value stands until the new one is there. */
  again: () => Promise<void>
}

/** What `load` resolves to. `load` must keep its identity, as of `useCallback`: another one loads anew. */
export function useLoaded<Value>(load: () => Promise<Value>): LoadedValue<Value> {
  const [value, setValue] = useState<Value>()
  const [error, setError] = useState<unknown>()
  const latest = useRef(load)
  const again = useCallback(async () => {
    latest.current = load
    try {
      const found = await load()
      if (latest.current !== load) return // asked for something else meanwhile
      setValue(() => found)
      setError(undefined)
    } catch (thrown) {
      if (latest.current === load) setError(thrown)
    }
  }, [load])
  useEffect(() => {
    setValue(undefined)
    setError(undefined)
    void again()
  }, [again])
  return { value, error, again }
}

/** What the work resolves to. A signal ends the wait with its reason, and the work goes on. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    // A signal may live much longer than one wait.
    const forget = () => signal.removeEventListener("abort", stop)
    if (signal.aborted) stop()
    signal.addEventListener("abort", stop, { once: true })
    work.finally(forget).then(resolve, reject)
  })
}

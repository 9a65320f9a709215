/** What of a browser the inbox uses where it exists. A program without a page has the inbox all the same. */
interface PageWords {
  document?: PageTarget
  navigator?: { onLine?: boolean; locks?: PageLocks }
  addEventListener?: PageTarget["addEventListener"]
  removeEventListener?: PageTarget["removeEventListener"]
}

interface PageTarget {
  addEventListener(name: string, listen: () => void): void
  removeEventListener(name: string, listen: () => void): void
}

interface PageLocks {
  request(
    name: string,
    options: { signal: AbortSignal },
    hold: () => Promise<unknown>,
  ): Promise<unknown>
}

const page = globalThis as unknown as PageWords

export const isOffline = (): boolean => page.navigator?.onLine === false
export const locks = (): PageLocks | undefined => page.navigator?.locks

/** Calls when the page is seen again, and when its network comes or leaves. Gives what ends it. */
export function onPageChange(listen: () => void): () => void {
  const places: [PageTarget | PageWords | undefined, string][] = [
    [page, "online"],
    [page, "offline"],
    [page.document, "visibilitychange"],
  ]
  for (const [place, name] of places) place?.addEventListener?.(name, listen)
  return () => {
    for (const [place, name] of places) place?.removeEventListener?.(name, listen)
  }
}

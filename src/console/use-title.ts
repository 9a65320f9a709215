import { useEffect } from "preact/hooks"

/** The title of the tab, which screen readers read at each new page. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title === "Belfry" ? title : `${title} · Belfry`
  }, [title])
}

import type { ComponentChildren } from "preact"
import { useEffect, useId, useRef } from "preact/hooks"

interface TabsProps<Name extends string> {
  label: string
  tabs: readonly { name: Name; text: string; count?: number }[]
  chosen: Name
  onChoose: (name: Name) => void
  children: ComponentChildren
}

/** Tabs as of the ARIA practices: arrow keys, Home and End choose; Tab leaves for the panel. */
export function Tabs<Name extends string>({
  label,
  tabs,
  chosen,
  onChoose,
  children,
}: TabsProps<Name>) {
  const id = useId()
  const list = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const tab = list.current?.querySelector(`[role=tab][data-name="${chosen}"]`)
    if (list.current && tab) showInside(list.current, tab)
  }, [chosen])
  const press = (event: KeyboardEvent) => {
    const at = tabs.findIndex(({ name }) => name === chosen)
    const is_rtl = list.current !== null && getComputedStyle(list.current).direction === "rtl"
    const to = nextTab(event.key, tabs.length, at, is_rtl)
    const tab = to === undefined ? undefined : tabs[to]
    if (!tab) return
    event.preventDefault()
    event.stopPropagation()
    onChoose(tab.name)
    list.current?.querySelectorAll<HTMLElement>("[role=tab]")[to ?? 0]?.focus()
  }
  return (
    <div class="tabs">
      <div role="tablist" aria-label={label} ref={list} onKeyDown={press}>
        {tabs.map(({ name, text, count }) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`${id}-${name}`}
            data-name={name}
            aria-selected={name === chosen}
            aria-controls={`${id}-panel`}
            tabIndex={name === chosen ? 0 : -1}
            onClick={() => onChoose(name)}
          >
            {text}
            {count !== undefined && <span class="count"> {count}</span>}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${chosen}`}>
        {children}
      </div>
    </div>
  )
}

/** Scrolls the row of tabs alone: the page stays where it is. */
function showInside(box: Element, tab: Element) {
  const outer = box.getBoundingClientRect()
  const inner = tab.getBoundingClientRect()
  box.scrollLeft += Math.max(0, inner.right - outer.right) - Math.max(0, outer.left - inner.left)
}

function nextTab(key: string, count: number, at: number, is_rtl: boolean): number | undefined {
  const forward = is_rtl ? "ArrowLeft" : "ArrowRight"
  const back = is_rtl ? "ArrowRight" : "ArrowLeft"
  if (key === forward) return (at + 1) % count
  if (key === back) return (at + count - 1) % count
  if (key === "Home") return 0
  return key === "End" ? count - 1 : undefined
}

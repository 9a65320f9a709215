/** For a region that scrolls: the keyboard must reach it (WCAG 2.1.1). */
export const REACHABLE = { tabIndex: 0 } as const

import { observable } from "../observable"

export type TabName = "html" | "text" | "source" | "headers" | "attachments" | "check" | "timeline"

export type WidthName = "phone" | "tablet" | "desktop" | "fit"

/** How a person looks at mails: it stays from one mail to the next, until the page is left. */
export interface ViewChoice {
  /** Undefined: the HTML, or the text of a mail without it. */
  tab: TabName | undefined
  width: WidthName
  is_dark: boolean
}

const FIRST_CHOICE: ViewChoice = { tab: undefined, width: "fit", is_dark: false }

export const view_choice = observable(FIRST_CHOICE)

export const changeView = (change: Partial<ViewChoice>): void =>
  view_choice.set({ ...view_choice.value, ...change })

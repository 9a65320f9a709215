import type { Stretch } from "../store/stretch"

/** Where a list of people goes on: behind this moment and, within it, behind this person. */
export interface Place {
  at: string
  user_id: string
}

interface Size {
  limit: number
  offset: number
}

/** The piece of a list that a page shows. */
export interface Part extends Size {
  after: Place | undefined
  before: Place | undefined
}

/** The same with places as texts. */
export const partOf = ({ limit, offset, after, before }: Stretch & Size): Part => ({
  limit,
  offset,
  after: placeFrom(after),
  before: placeFrom(before),
})

/** As a cursor carries it. */
export const placeText = ({ at, user_id }: Place): string => `${at} ${user_id}`

export function placeFrom(text: string | undefined): Place | undefined {
  const [at, user_id] = text?.split(" ") ?? []
  return at && user_id ? { at, user_id } : undefined
}

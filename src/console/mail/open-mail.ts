import { navigate, place } from "../router"

/** Opens a mail, or the list alone; the filter stays in the address. */
export function openMail(id: string | undefined): void {
  const { query } = place.value
  const search = query ? `?${query}` : ""
  navigate(id === undefined ? `/mailbox${search}` : `/mailbox/${id}${search}`)
}

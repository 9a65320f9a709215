/** How many attempts run: of all, and of each endpoint. */
export class Slots {
  taken = 0
  readonly busy = new Map<string, number>()

  /** Takes one, until the returned function is called, which tells `onFree` the first time. */
  take(webhook_id: string, onFree: () => void): () => void {
    this.#change(webhook_id, 1)
    let is_taken = true
    return () => {
      if (!is_taken) return
      is_taken = false
      this.#change(webhook_id, -1)
      onFree()
    }
  }

  #change(webhook_id: string, by: number) {
    this.taken += by
    const busy = (this.busy.get(webhook_id) ?? 0) + by
    if (busy > 0) this.busy.set(webhook_id, busy)
    else this.busy.delete(webhook_id)
  }
}

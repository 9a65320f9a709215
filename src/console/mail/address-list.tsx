/** So many addresses stand in a row. Of more, all but the first ones are folded. */
const MOST_SHOWN = 6
const FIRST_SHOWN = 3

/** Addresses in a row, so few that the mail below them is seen. */
export function AddressList({ addresses }: { addresses: string[] }) {
  if (addresses.length <= MOST_SHOWN) return <Row addresses={addresses} />
  return (
    <>
      <Row addresses={addresses.slice(0, FIRST_SHOWN)} />
      <details>
        <summary>and {addresses.length - FIRST_SHOWN} more</summary>
        <Row addresses={addresses.slice(FIRST_SHOWN)} />
      </details>
    </>
  )
}

const Row = ({ addresses }: { addresses: string[] }) => <bdi>{addresses.join(", ")}</bdi>

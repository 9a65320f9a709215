/** A sentence of the server, in which `this` is code. */
export const Prose = ({ text }: { text: string }) => (
  <>
    {text
      .split("`")
      .map((part, at) => (at % 2 === 1 ? <code key={`${at} ${part}`}>{part}</code> : part))}
  </>
)

/** Asks before something changes. The browser's own dialog keeps the focus inside and gives it back. */
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

interface ConfirmProps {
  readonly title: string;
  readonly action: string;
  readonly children: ComponentChildren;
  onConfirm(): void;
  onClose(): void;
}

export function Confirm({ title, action, children, onConfirm, onClose }: ConfirmProps): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => element.current?.showModal(), []);
  const confirm = (): void => {
    onConfirm();
    element.current?.close();
  };
  return (
    <dialog ref={element} aria-labelledby="confirm-title" onClose={onClose}>
      <h2 id="confirm-title">{title}</h2>
      {children}
      <p class="line">
        <button type="button" class="primary" onClick={confirm}>
          {action}
        </button>
        <button type="button" onClick={() => element.current?.close()}>
          Cancel
        </button>
      </p>
    </dialog>
  );
}

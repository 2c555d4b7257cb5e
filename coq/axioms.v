(* The four analysis axioms of k3/logic/analysis.py, as theorems of the real numbers.
   Optional check, where coqc is installed:  coqc coq/axioms.v *)
Require Import Reals Lra.
Open Scope R_scope.

Theorem exp_add : forall x y, exp (x + y) = exp x * exp y.
Proof. exact exp_plus. Qed.

Theorem exp_tangent : forall x, x + 1 <= exp x.
Proof. intros x. pose proof (exp_ineq1_le x). lra. Qed.

Theorem exp_log : forall x, 0 < x -> exp (ln x) = x.
Proof. exact exp_ln. Qed.

Theorem sqrt_square : forall x, 0 <= x -> 0 <= sqrt x /\ sqrt x * sqrt x = x.
Proof. intros x H. split. apply sqrt_pos. now apply sqrt_sqrt. Qed.

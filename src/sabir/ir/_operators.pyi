"""The operators as methods, for editors and type checkers.

Written by tools/write_stubs.py from the rooms; edit those. A method has the inputs of the newest version of
its operator, and the attributes of all versions: the docstring says which ones are older.
"""

# One declaration for each operator of the standard: the file is as long as the standard is.
from collections.abc import Callable
from typing import Any, Literal, overload

from sabir.ir._operands import (
    ElementLike,
    FloatLike,
    FloatsLike,
    GraphLike,
    IntLike,
    IntsLike,
    Operand,
    SparseTensorLike,
    StringLike,
    StringsLike,
    TensorLike,
    TypeLike,
    Value,
)

class DomainOperators:
    def __getattr__(self, name: str, /) -> Callable[..., Any]: ...

class MlOperators:
    def ArrayFeatureExtractor(self, X: Operand, Y: Operand, /, *, name: str = "") -> Value:
        """ArrayFeatureExtractor: The elements of `X` along its last axis at the indices in `Y`, in that
        order.

        Inputs:
            X: A tensor of rank 1 or more.
            Y: Indices along the last axis, from 0; of any shape, read in order.

        Outputs:
            Z: The shape of X, its last dimension the size of Y; at least of rank 2.
        """

    def Binarizer(self, X: Operand, /, *, threshold: FloatLike | None = 0.0, name: str = "") -> Value:
        """Binarizer: 1 where an element is greater than `threshold`, else 0.

        Inputs:
            X: A tensor of any shape.

        Attributes:
            threshold (float, default 0.0): The bound that an element must exceed.

        Outputs:
            Y: The input's shape, of 0 and 1.
        """

    def CastMap(
        self, X: Value, /, *, max_map: IntLike | None = 1, map_form: StringLike | None = 'DENSE', cast_to:
        StringLike | None = 'TO_FLOAT', name: str = ""
    ) -> Value:
        """CastMap: The values of a map, in the order of its keys, as a tensor of one row.

        Inputs:
            X: A map from integers to numbers or to strings of numbers.

        Attributes:
            max_map (int, default 1): The number of columns in the form SPARSE.
            map_form (string, default 'DENSE'): DENSE: the values side by side; SPARSE: keys are column
                indices. Values: `DENSE`, `SPARSE`.
            cast_to (string, default 'TO_FLOAT'): The type of Y. Values: `TO_FLOAT`, `TO_STRING`,
                `TO_INT64`.

        Outputs:
            Y: Shape [1, C]: as many columns as the map has entries, or `max_map`.
        """

    def CategoryMapper(
        self, X: Operand, /, *, default_int64: IntLike | None = -1, default_string: StringLike | None =
        '_Unused', cats_int64s: IntsLike | None = None, cats_strings: StringsLike | None = None, name: str =
        ""
    ) -> Value:
        """CategoryMapper: Each string replaced by its integer in a table, or each integer by its string.

        Inputs:
            X: Strings or integers, of any shape.

        Attributes:
            default_int64 (int, default -1): The result for a string that is not in the table.
            default_string (string, default '_Unused'): The same for an integer.
            cats_int64s (ints, optional): The table's integers.
            cats_strings (strings, optional): The table's strings, one for each integer.

        Outputs:
            Y: The input's shape, of the other type.
        """

    def DictVectorizer(
        self, X: Value, /, *, int64_vocabulary: IntsLike | None = None, string_vocabulary: StringsLike | None
        = None, name: str = ""
    ) -> Value:
        """DictVectorizer: The map's value for each word of a vocabulary, or 0 where the map lacks the
        word.

        Inputs:
            X: A map whose keys are words of the vocabulary; others are ignored.

        Attributes:
            int64_vocabulary (ints, optional): The words of a map from integers.
            string_vocabulary (strings, optional): The words of a map from strings.

        Outputs:
            Y: Shape [1, C], C the length of the vocabulary, of the map's value type.
        """

    def FeatureVectorizer(
        self, *X: Operand, inputdimensions: IntsLike | None = None, name: str = ""
    ) -> Value:
        """FeatureVectorizer: Feature matrices joined along the second dimension, each cut or padded with 0
        to its size.

        Inputs:
            X (variadic): Matrices [N, C]; a vector [C] is one row.

        Attributes:
            inputdimensions (ints, optional): The columns of each input in Y; all columns if absent.

        Outputs:
            Y: Shape [N, sum of the sizes].
        """

    def Imputer(
        self, X: Operand, /, *, replaced_value_int64: IntLike | None = 0, imputed_value_int64s: IntsLike |
        None = None, replaced_value_float: FloatLike | None = 0.0, imputed_value_floats: FloatsLike | None =
        None, name: str = ""
    ) -> Value:
        """Imputer: The input with each element that marks a missing value replaced.

        Inputs:
            X: A tensor of rank 1 or more; the features are along the last dimension.

        Attributes:
            replaced_value_int64 (int, default 0): The mark of a missing integer.
            imputed_value_int64s (ints, optional): The replacement: one value, or one per feature.
            replaced_value_float (float, default 0.0): The mark of a missing float; may be NaN.
            imputed_value_floats (floats, optional): The replacement: one value, or one per feature.

        Outputs:
            Y: The input's shape.
        """

    def LabelEncoder(
        self, X: Operand, /, *, default_string: StringLike | None = '_Unused', default_int64: IntLike | None =
        -1, default_float: FloatLike | None = -0.0, values_int64s: IntsLike | None = None, values_strings:
        StringsLike | None = None, keys_floats: FloatsLike | None = None, values_floats: FloatsLike | None =
        None, keys_int64s: IntsLike | None = None, keys_strings: StringsLike | None = None, default_tensor:
        TensorLike | None = None, values_tensor: TensorLike | None = None, keys_tensor: TensorLike | None =
        None, classes_strings: StringsLike | None = None, name: str = ""
    ) -> Value:
        """LabelEncoder: Each element replaced by the value of its key in a table.

        Inputs:
            X: Labels, of any shape and of the keys' type.

        Attributes:
            default_string (string, default '_Unused'): The value of an element that is not in the
                table.
            default_int64 (int, default -1): The same, as an integer.
            default_float (float, default -0.0): The same, as a float.
            values_int64s (ints, optional): The values, if they are integers.
            values_strings (strings, optional): The values, if they are strings.
            keys_floats (floats, optional): The keys, if they are floats; of equal keys the last
                applies.
            values_floats (floats, optional): The values, if they are floats.
            keys_int64s (ints, optional): The keys, if they are integers.
            keys_strings (strings, optional): The keys, if they are strings.
            default_tensor (tensor, optional): The default for values in a tensor, shape [1].
            values_tensor (tensor, optional): The values as a vector, of any type.
            keys_tensor (tensor, optional): The keys as a vector, of any type.
            classes_strings (strings, up to version 1): The labels; an integer is an index into them.

        Outputs:
            Y: The input's shape, of the values' type.
        """

    def LinearClassifier(
        self, X: Operand, /, *, post_transform: StringLike | None = 'NONE', classlabels_ints: IntsLike | None
        = None, classlabels_strings: StringsLike | None = None, multi_class: IntLike | None = 0, intercepts:
        FloatsLike | None = None, coefficients: FloatsLike, outputs: Literal[2] = 2, name: str = ""
    ) -> tuple[Value, Value]:
        """LinearClassifier: The scores `X W^T + b` of each class, and the label of the highest.

        Inputs:
            X: Features [N, C], or one row [C].

        Attributes:
            post_transform (string, default 'NONE'): How scores are transformed: NONE, SOFTMAX,
                SOFTMAX_ZERO (of those that are not 0), LOGISTIC or PROBIT. Values: `NONE`, `SOFTMAX`,
                `LOGISTIC`, `SOFTMAX_ZERO`, `PROBIT`.
            classlabels_ints (ints, optional): The labels, if they are integers.
            classlabels_strings (strings, optional): The labels, if they are strings.
            multi_class (int, default 0): How the model was trained; of no effect here.
            intercepts (floats, optional): b, one per score; 0 if absent.
            coefficients (floats, required): W, row by row: C weights for each score.

        Outputs:
            Y: Shape [N]: the labels.
            Z: Shape [N, E]: the transformed scores; one score serves two classes.
        """

    def LinearRegressor(
        self, X: Operand, /, *, targets: IntLike | None = 1, intercepts: FloatsLike | None = None,
        coefficients: FloatsLike | None = None, post_transform: StringLike | None = 'NONE', name: str = ""
    ) -> Value:
        """LinearRegressor: `X W^T + b`, transformed.

        Inputs:
            X: Features [N, C], or one row [C].

        Attributes:
            targets (int, default 1): The number of outputs for each row.
            intercepts (floats, optional): b, one per target; 0 if absent.
            coefficients (floats, optional): W, row by row: C weights for each target.
            post_transform (string, default 'NONE'): How scores are transformed: NONE, SOFTMAX,
                SOFTMAX_ZERO (of those that are not 0), LOGISTIC or PROBIT. Values: `NONE`, `SOFTMAX`,
                `LOGISTIC`, `SOFTMAX_ZERO`, `PROBIT`.

        Outputs:
            Y: Shape [N, targets].
        """

    def Normalizer(self, X: Operand, /, *, norm: StringLike | None = 'MAX', name: str = "") -> Value:
        """Normalizer: Each row divided by its greatest element, by the sum of its magnitudes, or by its
        length.

        Inputs:
            X: Rows [N, C], or one row [C].

        Attributes:
            norm (string, default 'MAX'): The divisor: MAX, L1 or L2. Values: `MAX`, `L1`, `L2`.

        Outputs:
            Y: The input's shape; a row whose divisor is 0 is unchanged.
        """

    def OneHotEncoder(
        self, X: Operand, /, *, zeros: IntLike | None = 1, cats_strings: StringsLike | None = None,
        cats_int64s: IntsLike | None = None, name: str = ""
    ) -> Value:
        """OneHotEncoder: Each element as a vector of zeros with a 1 at the index of its category.

        Inputs:
            X: Categories, of any shape; floats are truncated to integers.

        Attributes:
            zeros (int, default 1): 1: an unknown category becomes zeros; 0: it is an error.
            cats_strings (strings, optional): The categories of strings.
            cats_int64s (ints, optional): The categories of numbers; exactly one of the two lists is
                set.

        Outputs:
            Y: The input's shape with one more dimension, the categories.
        """

    def SVMClassifier(
        self, X: Operand, /, *, classlabels_ints: IntsLike | None = None, rho: FloatsLike | None = None,
        prob_b: FloatsLike | None = None, coefficients: FloatsLike | None = None, classlabels_strings:
        StringsLike | None = None, prob_a: FloatsLike | None = None, support_vectors: FloatsLike | None =
        None, vectors_per_class: IntsLike | None = None, post_transform: StringLike | None = 'NONE',
        kernel_params: FloatsLike | None = None, kernel_type: StringLike | None = 'LINEAR', outputs:
        Literal[2] = 2, name: str = ""
    ) -> tuple[Value, Value]:
        """SVMClassifier: The class that wins most decisions of two, each `sum(coefficients * kernel(X,
        vectors)) + rho`.

        Inputs:
            X: Features [N, C], or one row [C].

        Attributes:
            classlabels_ints (ints, optional): The labels, if they are integers.
            rho (floats, optional): What is added to each decision.
            prob_b (floats, optional): B in the probability `1 / (1 + exp(A d + B))` of each decision d.
            coefficients (floats, optional): [E - 1, vectors] weights; without vectors [E, C].
            classlabels_strings (strings, optional): The labels, if they are strings.
            prob_a (floats, optional): A of each decision; with it Z contains probabilities.
            support_vectors (floats, optional): [vectors, C]: grouped by class, in order.
            vectors_per_class (ints, optional): Vectors of each class; none: linear scores. Values: 0 or
                more.
            post_transform (string, default 'NONE'): How scores are transformed: NONE, SOFTMAX,
                SOFTMAX_ZERO (of those that are not 0), LOGISTIC or PROBIT. Values: `NONE`, `SOFTMAX`,
                `LOGISTIC`, `SOFTMAX_ZERO`, `PROBIT`.
            kernel_params (floats, optional): gamma, coef0 and degree.
            kernel_type (string, default 'LINEAR'): LINEAR `u.v`, POLY `(gamma u.v + coef0)^degree`, RBF
                `exp(-gamma |u - v|^2)` or SIGMOID `tanh(gamma u.v + coef0)`. Values: `LINEAR`, `POLY`,
                `RBF`, `SIGMOID`.

        Outputs:
            Y: Shape [N]: the labels.
            Z: Shape [N, E]: probabilities, else one decision per pair of classes.
        """

    def SVMRegressor(
        self, X: Operand, /, *, rho: FloatsLike | None = None, coefficients: FloatsLike | None = None,
        n_supports: IntLike | None = 0, one_class: IntLike | None = 0, support_vectors: FloatsLike | None =
        None, post_transform: StringLike | None = 'NONE', kernel_params: FloatsLike | None = None,
        kernel_type: StringLike | None = 'LINEAR', name: str = ""
    ) -> Value:
        """SVMRegressor: `sum(coefficients * kernel(X, support_vectors)) + rho`, or with `one_class` its
        sign.

        Inputs:
            X: Features [N, C], or one row [C].

        Attributes:
            rho (floats, optional): What is added.
            coefficients (floats, optional): One weight per support vector, or else per feature.
            n_supports (int, default 0): Support vectors; 0: linear. Values: 0 or more.
            one_class (int, default 0): 1: the output is 1 where the value is positive, else -1.
            support_vectors (floats, optional): [n_supports, C], row by row.
            post_transform (string, default 'NONE'): How scores are transformed: NONE, SOFTMAX,
                SOFTMAX_ZERO (of those that are not 0), LOGISTIC or PROBIT. Values: `NONE`, `SOFTMAX`,
                `LOGISTIC`, `SOFTMAX_ZERO`, `PROBIT`.
            kernel_params (floats, optional): gamma, coef0 and degree.
            kernel_type (string, default 'LINEAR'): LINEAR `u.v`, POLY `(gamma u.v + coef0)^degree`, RBF
                `exp(-gamma |u - v|^2)` or SIGMOID `tanh(gamma u.v + coef0)`. Values: `LINEAR`, `POLY`,
                `RBF`, `SIGMOID`.

        Outputs:
            Y: Shape [N, 1].
        """

    def Scaler(
        self, X: Operand, /, *, scale: FloatsLike | None = None, offset: FloatsLike | None = None, name: str =
        ""
    ) -> Value:
        """Scaler: `(X - offset) * scale`, feature by feature.

        Inputs:
            X: Features along the last dimension.

        Attributes:
            scale (floats, optional): Factors: one, or one per feature; 1 if absent.
            offset (floats, optional): Subtracted first: one value, or one per feature; 0 if absent.

        Outputs:
            Y: The input's shape.
        """

    def TreeEnsemble(
        self, X: Operand, /, *, aggregate_function: IntLike | None = 1, post_transform: IntLike | None = 0,
        tree_roots: IntsLike, nodes_hitrates: TensorLike | None = None, nodes_missing_value_tracks_true:
        IntsLike | None = None, nodes_modes: TensorLike, leaf_weights: TensorLike, leaf_targetids: IntsLike,
        nodes_falsenodeids: IntsLike, n_targets: IntLike | None = None, nodes_trueleafs: IntsLike,
        nodes_featureids: IntsLike, nodes_splits: TensorLike, nodes_falseleafs: IntsLike, nodes_truenodeids:
        IntsLike, membership_values: TensorLike | None = None, name: str = ""
    ) -> Value:
        """TreeEnsemble: For each row and target the sum, mean, minimum or maximum of the leaves that the
        row reaches.

        Inputs:
            X: Features, shape [N, F].

        Attributes:
            aggregate_function (int, default 1): How leaves are aggregated: 0 mean of all trees, 1 sum,
                2 minimum, 3 maximum. Values: `0`, `1`, `2`, `3`.
            post_transform (int, default 0): 0 none, 1 softmax, 2 logistic, 3 softmax of non-zeros, 4
                probit. Values: `0`, `1`, `2`, `3`, `4`.
            tree_roots (ints, required): The root node of each tree.
            nodes_hitrates (tensor, optional): How often nodes are reached; ignored.
            nodes_missing_value_tracks_true (ints, optional): 1 where NaN takes the true branch of a
                node.
            nodes_modes (tensor, required): 0 <=, 1 <, 2 >=, 3 >, 4 ==, 5 !=, 6 in a set.
            leaf_weights (tensor, required): What each leaf adds to the score.
            leaf_targetids (ints, required): The target of each leaf.
            nodes_falsenodeids (ints, required): The node or leaf after each false branch.
            n_targets (int, optional): The number of targets; by default as many as the leaves name.
            nodes_trueleafs (ints, required): 1 where the true branch ends in a leaf.
            nodes_featureids (ints, required): The feature that each node tests.
            nodes_splits (tensor, required): The value that each node compares with.
            nodes_falseleafs (ints, required): 1 where the false branch ends in a leaf.
            nodes_truenodeids (ints, required): The node or leaf after each true branch.
            membership_values (tensor, optional): The sets of the nodes with mode 6, NaN after each set.

        Outputs:
            Y: Shape [N, n_targets].
        """

    def TreeEnsembleClassifier(
        self, X: Operand, /, *, post_transform: StringLike | None = 'NONE', nodes_nodeids: IntsLike | None =
        None, nodes_treeids: IntsLike | None = None, nodes_featureids: IntsLike | None = None, nodes_values:
        FloatsLike | None = None, nodes_hitrates: FloatsLike | None = None, nodes_truenodeids: IntsLike | None
        = None, nodes_falsenodeids: IntsLike | None = None, nodes_missing_value_tracks_true: IntsLike | None =
        None, nodes_modes: StringsLike | None = None, classlabels_int64s: IntsLike | None = None,
        classlabels_strings: StringsLike | None = None, base_values: FloatsLike | None = None, class_treeids:
        IntsLike | None = None, class_nodeids: IntsLike | None = None, class_ids: IntsLike | None = None,
        class_weights: FloatsLike | None = None, base_values_as_tensor: TensorLike | None = None,
        class_weights_as_tensor: TensorLike | None = None, nodes_values_as_tensor: TensorLike | None = None,
        nodes_hitrates_as_tensor: TensorLike | None = None, outputs: Literal[2] = 2, name: str = ""
    ) -> tuple[Value, Value]:
        """TreeEnsembleClassifier: The sum of the votes for each class at the leaves that a row reaches;
        the label of the highest.

        Inputs:
            X: Features [N, C], or one row [C].

        Attributes:
            post_transform (string, default 'NONE'): How scores are transformed: NONE, SOFTMAX,
                SOFTMAX_ZERO (of those that are not 0), LOGISTIC or PROBIT. Values: `NONE`, `SOFTMAX`,
                `LOGISTIC`, `SOFTMAX_ZERO`, `PROBIT`.
            nodes_nodeids (ints, optional): Each node's number in its tree.
            nodes_treeids (ints, optional): Each node's tree.
            nodes_featureids (ints, optional): The feature that each node tests.
            nodes_values (floats, optional): The value that each node compares with.
            nodes_hitrates (floats, optional): How often nodes are reached; ignored.
            nodes_truenodeids (ints, optional): The node that follows each true branch.
            nodes_falsenodeids (ints, optional): The node that follows each false branch.
            nodes_missing_value_tracks_true (ints, optional): 1 where NaN takes the true branch of a
                node.
            nodes_modes (strings, optional): Each node's test, or LEAF for a leaf. Values: `BRANCH_LEQ`,
                `BRANCH_LT`, `BRANCH_GTE`, `BRANCH_GT`, `BRANCH_EQ`, `BRANCH_NEQ`, `LEAF`.
            classlabels_int64s (ints, optional): The labels, if they are integers.
            classlabels_strings (strings, optional): The labels, if they are strings.
            base_values (floats, optional): Added to each class's score.
            class_treeids (ints, optional): The tree of each vote's leaf.
            class_nodeids (ints, optional): The leaf of each vote.
            class_ids (ints, optional): The class of each vote.
            class_weights (floats, optional): The weight of each vote.
            base_values_as_tensor (tensor, optional): In place of `base_values`.
            class_weights_as_tensor (tensor, optional): In place of `class_weights`.
            nodes_values_as_tensor (tensor, optional): In place of `nodes_values`.
            nodes_hitrates_as_tensor (tensor, optional): In place of `nodes_hitrates`.

        Outputs:
            Y: Shape [N]: the labels.
            Z: Shape [N, E]: the transformed scores; one score serves two classes.

        Removed with opset 5.
        """

    def TreeEnsembleRegressor(
        self, X: Operand, /, *, aggregate_function: StringLike | None = 'SUM', post_transform: StringLike |
        None = 'NONE', nodes_nodeids: IntsLike | None = None, nodes_treeids: IntsLike | None = None,
        nodes_featureids: IntsLike | None = None, nodes_values: FloatsLike | None = None, nodes_hitrates:
        FloatsLike | None = None, nodes_truenodeids: IntsLike | None = None, nodes_falsenodeids: IntsLike |
        None = None, nodes_missing_value_tracks_true: IntsLike | None = None, nodes_modes: StringsLike | None
        = None, n_targets: IntLike | None = None, base_values: FloatsLike | None = None, target_treeids:
        IntsLike | None = None, target_nodeids: IntsLike | None = None, target_ids: IntsLike | None = None,
        target_weights: FloatsLike | None = None, base_values_as_tensor: TensorLike | None = None,
        target_weights_as_tensor: TensorLike | None = None, nodes_values_as_tensor: TensorLike | None = None,
        nodes_hitrates_as_tensor: TensorLike | None = None, name: str = ""
    ) -> Value:
        """TreeEnsembleRegressor: For each row and target the sum, mean, minimum or maximum of the leaves
        that the row reaches.

        Inputs:
            X: Features [N, C], or one row [C].

        Attributes:
            aggregate_function (string, default 'SUM'): Of the leaves. Values: `AVERAGE`, `SUM`, `MIN`,
                `MAX`.
            post_transform (string, default 'NONE'): How scores are transformed: NONE, SOFTMAX,
                SOFTMAX_ZERO (of those that are not 0), LOGISTIC or PROBIT. Values: `NONE`, `SOFTMAX`,
                `LOGISTIC`, `SOFTMAX_ZERO`, `PROBIT`.
            nodes_nodeids (ints, optional): Each node's number in its tree.
            nodes_treeids (ints, optional): Each node's tree.
            nodes_featureids (ints, optional): The feature that each node tests.
            nodes_values (floats, optional): The value that each node compares with.
            nodes_hitrates (floats, optional): How often nodes are reached; ignored.
            nodes_truenodeids (ints, optional): The node that follows each true branch.
            nodes_falsenodeids (ints, optional): The node that follows each false branch.
            nodes_missing_value_tracks_true (ints, optional): 1 where NaN takes the true branch of a
                node.
            nodes_modes (strings, optional): Each node's test, or LEAF for a leaf. Values: `BRANCH_LEQ`,
                `BRANCH_LT`, `BRANCH_GTE`, `BRANCH_GT`, `BRANCH_EQ`, `BRANCH_NEQ`, `LEAF`.
            n_targets (int, optional): The number of targets; by default as many as the votes name.
            base_values (floats, optional): Added to each target after the aggregation.
            target_treeids (ints, optional): The tree of each vote's leaf.
            target_nodeids (ints, optional): The leaf of each vote.
            target_ids (ints, optional): The target of each vote.
            target_weights (floats, optional): The weight of each vote.
            base_values_as_tensor (tensor, optional): In place of `base_values`.
            target_weights_as_tensor (tensor, optional): In place of `target_weights`.
            nodes_values_as_tensor (tensor, optional): In place of `nodes_values`.
            nodes_hitrates_as_tensor (tensor, optional): In place of `nodes_hitrates`.

        Outputs:
            Y: Shape [N, n_targets].

        Removed with opset 5.
        """

    def ZipMap(
        self, X: Operand, /, *, classlabels_int64s: IntsLike | None = None, classlabels_strings: StringsLike |
        None = None, name: str = ""
    ) -> Value:
        """ZipMap: For each row a map from the class labels to the row's elements.

        Inputs:
            X: Rows [N, C], or one row [C], one column per label.

        Attributes:
            classlabels_int64s (ints, optional): The keys, if they are integers.
            classlabels_strings (strings, optional): The keys, if they are strings.

        Outputs:
            Z: A sequence of N maps.
        """

class PreviewOperators:
    def FlexAttention(
        self, Q: Operand, K: Operand, V: Operand, /, *, prob_mod: GraphLike | None = None, score_mod:
        GraphLike | None = None, softmax_precision: ElementLike | None = None, scale: FloatLike | None = None,
        name: str = ""
    ) -> Value:
        """FlexAttention: Sums of values, weighted by the similarity of their keys to each query: in each
        head `prob_mod(softmax(score_mod(Q K^T scale))) V`.

        Inputs:
            Q: (batch, heads, queries, size).
            K: (batch, kv heads, keys, size); consecutive heads of Q share one.
            V: (batch, kv heads, keys, value size).

        Attributes:
            prob_mod (graph, optional): Modifies the probabilities; the result has the same type and
                shape.
            score_mod (graph, optional): Modifies the scores; the result has the same type and shape.
            softmax_precision (int, optional): The element type of both graphs: by default float, or
                double for double. Values: `1` (float), `10` (float16), `11` (double), `16` (bfloat16).
            scale (float, optional): The factor of the products; 1 / sqrt(size) by default.

        Outputs:
            Y: (batch, heads, queries, value size).
        """

class TrainingOperators:
    @overload
    def Adagrad(
        self, R: Operand, T: Operand, /, *inputs: Operand, norm_coefficient: FloatLike | None = 0.0,
        decay_factor: FloatLike | None = 0.0, epsilon: FloatLike | None = 1e-06, outputs: Literal[1] = 1,
        name: str = ""
    ) -> Value:
        """Adagrad: `H' = H + G^2`, `X' = X - r G / (sqrt(H') + epsilon)`; `r` is `R / (1 + T
        decay_factor)`, and `norm_coefficient X` is added to G.

        Inputs:
            R: The first learning rate, a scalar.
            T: The number of previous steps, a scalar.
            inputs (variadic): All X, then their gradients G, then their sums of squares H.

        Attributes:
            norm_coefficient (float, default 0.0): The weight of the penalty |X|^2 / 2.
            decay_factor (float, default 0.0): How fast the learning rate decreases with T.
            epsilon (float, default 1e-06): Added to the divisor, against division by 0.

        Outputs:
            outputs (variadic): All new X, then their new H.
        """
    @overload
    def Adagrad(
        self, R: Operand, T: Operand, /, *inputs: Operand, norm_coefficient: FloatLike | None = 0.0,
        decay_factor: FloatLike | None = 0.0, epsilon: FloatLike | None = 1e-06, outputs: Literal[2], name:
        str = ""
    ) -> tuple[Value, Value]: ...
    @overload
    def Adagrad(
        self, R: Operand, T: Operand, /, *inputs: Operand, norm_coefficient: FloatLike | None = 0.0,
        decay_factor: FloatLike | None = 0.0, epsilon: FloatLike | None = 1e-06, outputs: Literal[3], name:
        str = ""
    ) -> tuple[Value, Value, Value]: ...
    @overload
    def Adagrad(
        self, R: Operand, T: Operand, /, *inputs: Operand, norm_coefficient: FloatLike | None = 0.0,
        decay_factor: FloatLike | None = 0.0, epsilon: FloatLike | None = 1e-06, outputs: Literal[4], name:
        str = ""
    ) -> tuple[Value, Value, Value, Value]: ...
    @overload
    def Adagrad(
        self, R: Operand, T: Operand, /, *inputs: Operand, norm_coefficient: FloatLike | None = 0.0,
        decay_factor: FloatLike | None = 0.0, epsilon: FloatLike | None = 1e-06, outputs: int, name: str = ""
    ) -> Any: ...

    @overload
    def Adam(
        self, R: Operand, T: Operand, /, *inputs: Operand, epsilon: FloatLike | None = 1e-06,
        norm_coefficient_post: FloatLike | None = 0.0, norm_coefficient: FloatLike | None = 0.0, beta:
        FloatLike | None = 0.999, alpha: FloatLike | None = 0.9, outputs: Literal[1] = 1, name: str = ""
    ) -> Value:
        """Adam: `V' = alpha V + (1 - alpha) G`, `H' = beta H + (1 - beta) G^2`, `X' = X - r V' / (sqrt(H')
        + epsilon)`; r comes from R and T, `norm_coefficient X` is added to G, and X' shrinks by
        `norm_coefficient_post`.

        Inputs:
            R: The learning rate, a scalar.
            T: The number of previous steps, a scalar; from 1 on r corrects the bias of the means.
            inputs (variadic): All X, then their gradients G, means V, means of squares H.

        Attributes:
            epsilon (float, default 1e-06): Added to the divisor, against division by 0.
            norm_coefficient_post (float, default 0.0): The share of X lost after the step.
            norm_coefficient (float, default 0.0): The weight of the penalty |X|^2 / 2.
            beta (float, default 0.999): The factor of the previous H.
            alpha (float, default 0.9): The factor of the previous V.

        Outputs:
            outputs (variadic): All new X, then new V, then new H.
        """
    @overload
    def Adam(
        self, R: Operand, T: Operand, /, *inputs: Operand, epsilon: FloatLike | None = 1e-06,
        norm_coefficient_post: FloatLike | None = 0.0, norm_coefficient: FloatLike | None = 0.0, beta:
        FloatLike | None = 0.999, alpha: FloatLike | None = 0.9, outputs: Literal[2], name: str = ""
    ) -> tuple[Value, Value]: ...
    @overload
    def Adam(
        self, R: Operand, T: Operand, /, *inputs: Operand, epsilon: FloatLike | None = 1e-06,
        norm_coefficient_post: FloatLike | None = 0.0, norm_coefficient: FloatLike | None = 0.0, beta:
        FloatLike | None = 0.999, alpha: FloatLike | None = 0.9, outputs: Literal[3], name: str = ""
    ) -> tuple[Value, Value, Value]: ...
    @overload
    def Adam(
        self, R: Operand, T: Operand, /, *inputs: Operand, epsilon: FloatLike | None = 1e-06,
        norm_coefficient_post: FloatLike | None = 0.0, norm_coefficient: FloatLike | None = 0.0, beta:
        FloatLike | None = 0.999, alpha: FloatLike | None = 0.9, outputs: Literal[4], name: str = ""
    ) -> tuple[Value, Value, Value, Value]: ...
    @overload
    def Adam(
        self, R: Operand, T: Operand, /, *inputs: Operand, epsilon: FloatLike | None = 1e-06,
        norm_coefficient_post: FloatLike | None = 0.0, norm_coefficient: FloatLike | None = 0.0, beta:
        FloatLike | None = 0.999, alpha: FloatLike | None = 0.9, outputs: int, name: str = ""
    ) -> Any: ...

    @overload
    def Gradient(
        self, *Inputs: Operand, y: StringLike, zs: StringsLike | None = None, xs: StringsLike, outputs:
        Literal[1] = 1, name: str = ""
    ) -> Value:
        """Gradient: The derivatives of the tensor named `y` by each of those named in `xs`, for the values
        of both and of those in `zs` in the inputs.

        Inputs:
            Inputs (variadic): A value for each name in `xs`, then for each in `zs`.

        Attributes:
            y (string, required): The tensor to differentiate.
            zs (strings, optional): Further tensors that `y` depends on.
            xs (strings, required): What to differentiate by.

        Outputs:
            Outputs (variadic): The derivative by each tensor in `xs`, of its shape.
        """
    @overload
    def Gradient(
        self, *Inputs: Operand, y: StringLike, zs: StringsLike | None = None, xs: StringsLike, outputs:
        Literal[2], name: str = ""
    ) -> tuple[Value, Value]: ...
    @overload
    def Gradient(
        self, *Inputs: Operand, y: StringLike, zs: StringsLike | None = None, xs: StringsLike, outputs:
        Literal[3], name: str = ""
    ) -> tuple[Value, Value, Value]: ...
    @overload
    def Gradient(
        self, *Inputs: Operand, y: StringLike, zs: StringsLike | None = None, xs: StringsLike, outputs:
        Literal[4], name: str = ""
    ) -> tuple[Value, Value, Value, Value]: ...
    @overload
    def Gradient(
        self, *Inputs: Operand, y: StringLike, zs: StringsLike | None = None, xs: StringsLike, outputs: int,
        name: str = ""
    ) -> Any: ...

    @overload
    def Momentum(
        self, R: Operand, T: Operand, /, *inputs: Operand, norm_coefficient: FloatLike, beta: FloatLike, mode:
        StringLike, alpha: FloatLike, outputs: Literal[1] = 1, name: str = ""
    ) -> Value:
        """Momentum: `V' = alpha V + beta G` and `X' = X - R V'`, or by Nesterov `X - R (G + alpha V')`,
        with `norm_coefficient X` added to G.

        Inputs:
            R: The learning rate, a scalar.
            T: The number of previous steps, a scalar; at 0 beta is taken as 1.
            inputs (variadic): All X, then their gradients G, then their momenta V.

        Attributes:
            norm_coefficient (float, required): The weight of half the squared norm of X.
            beta (float, required): The factor of the gradient.
            mode (string, required): How V acts on X. Values: `standard`, `nesterov`.
            alpha (float, required): The factor of the previous V.

        Outputs:
            outputs (variadic): All new X, then their new V.
        """
    @overload
    def Momentum(
        self, R: Operand, T: Operand, /, *inputs: Operand, norm_coefficient: FloatLike, beta: FloatLike, mode:
        StringLike, alpha: FloatLike, outputs: Literal[2], name: str = ""
    ) -> tuple[Value, Value]: ...
    @overload
    def Momentum(
        self, R: Operand, T: Operand, /, *inputs: Operand, norm_coefficient: FloatLike, beta: FloatLike, mode:
        StringLike, alpha: FloatLike, outputs: Literal[3], name: str = ""
    ) -> tuple[Value, Value, Value]: ...
    @overload
    def Momentum(
        self, R: Operand, T: Operand, /, *inputs: Operand, norm_coefficient: FloatLike, beta: FloatLike, mode:
        StringLike, alpha: FloatLike, outputs: Literal[4], name: str = ""
    ) -> tuple[Value, Value, Value, Value]: ...
    @overload
    def Momentum(
        self, R: Operand, T: Operand, /, *inputs: Operand, norm_coefficient: FloatLike, beta: FloatLike, mode:
        StringLike, alpha: FloatLike, outputs: int, name: str = ""
    ) -> Any: ...

class OperatorMethods:
    def Abs(self, X: Operand, /, *, name: str = "") -> Value:
        """Abs: The absolute value of each element; the least signed integer is unchanged.

        Inputs:
            X: A tensor of any shape.

        Outputs:
            Y: The input's shape.
        """

    def Acos(self, input: Operand, /, *, name: str = "") -> Value:
        """Acos: The angle, in radians, whose cosine is each element; NaN outside [-1, 1].

        Inputs:
            input: Cosines, in a tensor of any shape.

        Outputs:
            output: The input's shape; angles from 0 to pi.
        """

    def Acosh(self, input: Operand, /, *, name: str = "") -> Value:
        """Acosh: The nonnegative number whose hyperbolic cosine is each element; NaN below 1.

        Inputs:
            input: A tensor of any shape.

        Outputs:
            output: The input's shape, nothing below 0.
        """

    def Add(
        self, A: Operand, B: Operand, /, *, axis: IntLike | None = None, broadcast: IntLike | None = None,
        name: str = ""
    ) -> Value:
        """Add: The sum of two tensors, elementwise: `A + B`.

        Inputs:
            A: One summand.
            B: The other summand.

        Attributes:
            axis (int, up to version 6): The axis of `A` at which the dimensions of `B` begin; by
                default they are its last.
            broadcast (int, up to version 6): 1: `B` is broadcast to the shape of `A`.

        Outputs:
            C: The shape to which both inputs broadcast.
        """

    def Affine(
        self, X: Operand, /, *, alpha: FloatLike | None = 1.0, beta: FloatLike | None = 0.0, name: str = ""
    ) -> Value:
        """Affine: `alpha * X + beta`, elementwise.

        Inputs:
            X: A tensor of any shape.

        Attributes:
            alpha (float, default 1.0): The factor.
            beta (float, default 0.0): The summand.

        Outputs:
            Y: The input's shape.

        Removed with opset 10.
        """

    def AffineGrid(
        self, theta: Operand, size: Operand, /, *, align_corners: IntLike | None = 0, name: str = ""
    ) -> Value:
        """AffineGrid: For each pixel p of an image, in coordinates from -1 to 1, the coordinates `theta @
        [p, 1]`.

        Inputs:
            theta: Affine maps, [N, 2, 3], or [N, 3, 4] for volumes; x comes first, then y.
            size: The sizes of the image: [N, C, H, W] or [N, C, D, H, W].

        Attributes:
            align_corners (int, default 0): 1: -1 and 1 are the centres of the first and the last pixel,
                0: their outer edges.

        Outputs:
            grid: The coordinates, [N, H, W, 2] or [N, D, H, W, 3].
        """

    def And(
        self, A: Operand, B: Operand, /, *, axis: IntLike | None = None, broadcast: IntLike | None = None,
        name: str = ""
    ) -> Value:
        """And: Whether both elements are true.

        Inputs:
            A: The first operand.
            B: The second operand.

        Attributes:
            axis (int, up to version 1): The axis of `A` at which the dimensions of `B` begin; by
                default they are its last.
            broadcast (int, up to version 1): 1: `B` is broadcast to the shape of `A`.

        Outputs:
            C: The shape to which both inputs broadcast.
        """

    def ArgMax(
        self, data: Operand, /, *, keepdims: IntLike | None = 1, axis: IntLike | None = 0, select_last_index:
        IntLike | None = 0, name: str = ""
    ) -> Value:
        """ArgMax: The index of the greatest element along `axis`; NaN counts as the greatest.

        Inputs:
            data: A tensor of rank 1 or more.

        Attributes:
            keepdims (int, default 1): 1: the axis stays, with size 1; 0: it is removed.
            axis (int, default 0): The axis to search along.
            select_last_index (int, default 0): Of several greatest elements, 0: the first, 1: the last.

        Outputs:
            reduced: The indices.
        """

    def ArgMin(
        self, data: Operand, /, *, keepdims: IntLike | None = 1, axis: IntLike | None = 0, select_last_index:
        IntLike | None = 0, name: str = ""
    ) -> Value:
        """ArgMin: The index of the least element along `axis`; NaN counts as the least.

        Inputs:
            data: A tensor of rank 1 or more.

        Attributes:
            keepdims (int, default 1): 1: the axis stays, with size 1; 0: it is removed.
            axis (int, default 0): The axis to search along.
            select_last_index (int, default 0): Of several least elements, 0: the first, 1: the last.

        Outputs:
            reduced: The indices.
        """

    def Asin(self, input: Operand, /, *, name: str = "") -> Value:
        """Asin: The angle, in radians, whose sine is each element; NaN outside [-1, 1].

        Inputs:
            input: Sines, in a tensor of any shape.

        Outputs:
            output: The input's shape; angles from -pi/2 to pi/2.
        """

    def Asinh(self, input: Operand, /, *, name: str = "") -> Value:
        """Asinh: The number whose hyperbolic sine is each element.

        Inputs:
            input: A tensor of any shape.

        Outputs:
            output: The input's shape.
        """

    def Atan(self, input: Operand, /, *, name: str = "") -> Value:
        """Atan: The angle, in radians, whose tangent is each element.

        Inputs:
            input: Tangents, in a tensor of any shape.

        Outputs:
            output: The input's shape; angles from -pi/2 to pi/2.
        """

    def Atanh(self, input: Operand, /, *, name: str = "") -> Value:
        """Atanh: The number whose hyperbolic tangent is each element; NaN outside [-1, 1].

        Inputs:
            input: A tensor of any shape.

        Outputs:
            output: The input's shape; infinite at -1 and 1.
        """

    @overload
    def Attention(
        self, Q: Operand, K: Operand, V: Operand, attn_mask: Operand | None = None, past_key: Operand | None =
        None, past_value: Operand | None = None, nonpad_kv_seqlen: Operand | None = None, /, *,
        qk_matmul_output_mode: IntLike | None = 0, softcap: FloatLike | None = 0.0, softmax_precision:
        ElementLike | None = None, kv_num_heads: IntLike | None = None, q_num_heads: IntLike | None = None,
        scale: FloatLike | None = None, is_causal: IntLike | None = 0, right_window_size: IntLike | None = -1,
        left_window_size: IntLike | None = -1, outputs: Literal[1] = 1, name: str = ""
    ) -> Value:
        """Attention: Sums of values, weighted by the similarity of their keys to each query: in each head
        `softmax(Q K^T scale + mask) V`.

        Inputs:
            Q: (batch, heads, queries, size), or (batch, queries, heads * size).
            K: (batch, kv heads, new keys, size), or (batch, new keys, kv heads * size).
            V: As K; its size may differ.
            attn_mask (optional): True where a query attends to a key, or a bias to add to the scores;
                broadcasts to (batch, heads, queries, keys); keys after its end are excluded.
            past_key (optional): (batch, kv heads, past keys, size), concatenated before K.
            past_value (optional): Present with `past_key`, concatenated before V.
            nonpad_kv_seqlen (optional): (batch): the number of valid keys; the queries are at the last
                of them.

        Attributes:
            qk_matmul_output_mode (int, default 0): The scores to output: 0 the scaled products, 1
                capped, 2 masked, 3 the probabilities. Values: `0`, `1`, `2`, `3`.
            softcap (float, default 0.0): Scores become `softcap tanh(score / softcap)`; 0: no cap.
            softmax_precision (int, optional): The element type of the softmax; that of Q by default.
                Values: `1` (float), `10` (float16), `11` (double), `16` (bfloat16).
            kv_num_heads (int, optional): The number of heads of K and V of rank 3. Values: 0 or more.
            q_num_heads (int, optional): The number of heads of Q of rank 3, a multiple of that of K.
                Values: 0 or more.
            scale (float, optional): The factor of the products; 1 / sqrt(size) by default.
            is_causal (int, default 0): 1: a query does not attend to the keys after it.
            right_window_size (int, default -1): The number of keys after its own that a query attends
                to; -1: all. Values: -1 or more.
            left_window_size (int, default -1): The number of keys before its own that a query attends
                to; -1: all. Values: -1 or more.

        Outputs:
            Y: (batch, heads, queries, value size), or (batch, queries, heads * value size) as Q.
            present_key (optional): All keys, (batch, kv heads, keys, size).
            present_value (optional): All values, (batch, kv heads, keys, value size).
            qk_matmul_output (optional): The scores, (batch, heads, queries, keys).
        """
    @overload
    def Attention(
        self, Q: Operand, K: Operand, V: Operand, attn_mask: Operand | None = None, past_key: Operand | None =
        None, past_value: Operand | None = None, nonpad_kv_seqlen: Operand | None = None, /, *,
        qk_matmul_output_mode: IntLike | None = 0, softcap: FloatLike | None = 0.0, softmax_precision:
        ElementLike | None = None, kv_num_heads: IntLike | None = None, q_num_heads: IntLike | None = None,
        scale: FloatLike | None = None, is_causal: IntLike | None = 0, right_window_size: IntLike | None = -1,
        left_window_size: IntLike | None = -1, outputs: Literal[2], name: str = ""
    ) -> tuple[Value, Value]: ...
    @overload
    def Attention(
        self, Q: Operand, K: Operand, V: Operand, attn_mask: Operand | None = None, past_key: Operand | None =
        None, past_value: Operand | None = None, nonpad_kv_seqlen: Operand | None = None, /, *,
        qk_matmul_output_mode: IntLike | None = 0, softcap: FloatLike | None = 0.0, softmax_precision:
        ElementLike | None = None, kv_num_heads: IntLike | None = None, q_num_heads: IntLike | None = None,
        scale: FloatLike | None = None, is_causal: IntLike | None = 0, right_window_size: IntLike | None = -1,
        left_window_size: IntLike | None = -1, outputs: Literal[3], name: str = ""
    ) -> tuple[Value, Value, Value]: ...
    @overload
    def Attention(
        self, Q: Operand, K: Operand, V: Operand, attn_mask: Operand | None = None, past_key: Operand | None =
        None, past_value: Operand | None = None, nonpad_kv_seqlen: Operand | None = None, /, *,
        qk_matmul_output_mode: IntLike | None = 0, softcap: FloatLike | None = 0.0, softmax_precision:
        ElementLike | None = None, kv_num_heads: IntLike | None = None, q_num_heads: IntLike | None = None,
        scale: FloatLike | None = None, is_causal: IntLike | None = 0, right_window_size: IntLike | None = -1,
        left_window_size: IntLike | None = -1, outputs: Literal[4], name: str = ""
    ) -> tuple[Value, Value, Value, Value]: ...
    @overload
    def Attention(
        self, Q: Operand, K: Operand, V: Operand, attn_mask: Operand | None = None, past_key: Operand | None =
        None, past_value: Operand | None = None, nonpad_kv_seqlen: Operand | None = None, /, *,
        qk_matmul_output_mode: IntLike | None = 0, softcap: FloatLike | None = 0.0, softmax_precision:
        ElementLike | None = None, kv_num_heads: IntLike | None = None, q_num_heads: IntLike | None = None,
        scale: FloatLike | None = None, is_causal: IntLike | None = 0, right_window_size: IntLike | None = -1,
        left_window_size: IntLike | None = -1, outputs: int, name: str = ""
    ) -> Any: ...

    def AveragePool(
        self, X: Operand, /, *, pads: IntsLike | None = None, auto_pad: StringLike | None = 'NOTSET', strides:
        IntsLike | None = None, kernel_shape: IntsLike, count_include_pad: IntLike | None = 0, ceil_mode:
        IntLike | None = 0, dilations: IntsLike | None = None, name: str = ""
    ) -> Value:
        """AveragePool: The mean of each window that slides over the spatial axes.

        Inputs:
            X: The input, (N, C, D1, ..., Dn).

        Attributes:
            pads (ints, optional): Padding at the beginning of each spatial axis, then at the end of
                each; 0 by default. Values: 0 or more.
            auto_pad (string, default 'NOTSET'): SAME_UPPER, SAME_LOWER: as much padding as makes O =
                ceil(D / stride), an odd element at the end or the beginning; VALID: no padding; NOTSET:
                `pads`. Values: `NOTSET`, `SAME_UPPER`, `SAME_LOWER`, `VALID`.
            strides (ints, optional): The step between windows along each spatial axis; 1 by default.
                Values: 1 or more.
            kernel_shape (ints, required): The size of the window along each axis. Values: 1 or more.
            count_include_pad (int, default 0): 1: padding counts as zeros in the mean.
            ceil_mode (int, default 0): 1: the last window may end beyond the padded input.
            dilations (ints, optional): The step between the elements of a window along each spatial
                axis; 1 by default. Values: 1 or more.

        Outputs:
            Y: The means, (N, C, O1, ..., On).
        """

    @overload
    def BatchNormalization(
        self, X: Operand, scale: Operand, B: Operand, input_mean: Operand, input_var: Operand, /, *, momentum:
        FloatLike | None = 0.9, epsilon: FloatLike | None = 1e-05, training_mode: IntLike | None = 0, spatial:
        IntLike | None = None, is_test: IntLike | None = None, outputs: Literal[1] = 1, name: str = ""
    ) -> Value:
        """BatchNormalization: `(X - mean) / sqrt(var + epsilon) * scale + B`, by the statistics of inputs
        or of the batch.

        Inputs:
            X: The input, (N, C, D1, ..., Dn), or (N) with one channel.
            scale: The factor of each channel, (C).
            B: The bias of each channel, (C).
            input_mean: The mean of each channel, or the running mean in training, (C).
            input_var: The variance of each channel, or the running variance in training, (C).

        Attributes:
            momentum (float, default 0.9): The share of the running statistics that remains after a
                batch.
            epsilon (float, default 1e-05): Added to the variance, so that it is not 0.
            training_mode (int, default 0): 1: uses the statistics of the batch, and updates the running
                ones.
            spatial (int, up to version 7): 0: statistics for each position of an item, not for each
                channel.
            is_test (int, up to version 6): 1: uses the inputs `mean` and `var`; 0: the statistics of
                the batch.

        Outputs:
            Y: The input's shape.
            running_mean (optional): In training: the mean of `input_mean` and the batch's, weighted by
                `momentum`.
            running_var (optional): In training: the same of `input_var` and the population variance of
                the batch.
        """
    @overload
    def BatchNormalization(
        self, X: Operand, scale: Operand, B: Operand, input_mean: Operand, input_var: Operand, /, *, momentum:
        FloatLike | None = 0.9, epsilon: FloatLike | None = 1e-05, training_mode: IntLike | None = 0, spatial:
        IntLike | None = None, is_test: IntLike | None = None, outputs: Literal[2], name: str = ""
    ) -> tuple[Value, Value]: ...
    @overload
    def BatchNormalization(
        self, X: Operand, scale: Operand, B: Operand, input_mean: Operand, input_var: Operand, /, *, momentum:
        FloatLike | None = 0.9, epsilon: FloatLike | None = 1e-05, training_mode: IntLike | None = 0, spatial:
        IntLike | None = None, is_test: IntLike | None = None, outputs: Literal[3], name: str = ""
    ) -> tuple[Value, Value, Value]: ...
    @overload
    def BatchNormalization(
        self, X: Operand, scale: Operand, B: Operand, input_mean: Operand, input_var: Operand, /, *, momentum:
        FloatLike | None = 0.9, epsilon: FloatLike | None = 1e-05, training_mode: IntLike | None = 0, spatial:
        IntLike | None = None, is_test: IntLike | None = None, outputs: int, name: str = ""
    ) -> Any: ...

    def Bernoulli(
        self, input: Operand, /, *, dtype: ElementLike | None = None, seed: FloatLike | None = None, name: str
        = ""
    ) -> Value:
        """Bernoulli: 1 with the probability in the input, 0 otherwise.

        Inputs:
            input: Probabilities, each in [0, 1].

        Attributes:
            dtype (int, optional): The element type, as a number of TensorProto.DataType; that of the
                input by default. Values: `1` (float), `2` (uint8), `3` (int8), `4` (uint16), `5`
                (int16), `6` (int32), `7` (int64), `9` (bool), `10` (float16), `11` (double), `12`
                (uint32), `13` (uint64), `16` (bfloat16).
            seed (float, optional): The seed of the generator; without it, each run differs.

        Outputs:
            output: Zeros and ones, in the input's shape.
        """

    def BitCast(self, input: Operand, /, *, to: ElementLike, name: str = "") -> Value:
        """BitCast: The bits of each element, read as the type `to` of the same width.

        Inputs:
            input: A tensor of any shape.

        Attributes:
            to (int, required): The element type, as a number of TensorProto.DataType. Values: `1`
                (float), `2` (uint8), `3` (int8), `4` (uint16), `5` (int16), `6` (int32), `7` (int64),
                `9` (bool), `10` (float16), `11` (double), `12` (uint32), `13` (uint64), `14`
                (complex64), `15` (complex128), `16` (bfloat16), `17` (float8e4m3fn), `18`
                (float8e4m3fnuz), `19` (float8e5m2), `20` (float8e5m2fnuz), `21` (uint4), `22` (int4),
                `23` (float4e2m1), `24` (float8e8m0), `25` (uint2), `26` (int2).

        Outputs:
            output: The input's shape.
        """

    def BitShift(self, X: Operand, Y: Operand, /, *, direction: StringLike, name: str = "") -> Value:
        """BitShift: `X << Y` or `X >> Y`; shifts by the width or more, or below 0, leave only the sign.

        Inputs:
            X: What to shift.
            Y: By how many bits.

        Attributes:
            direction (string, required): LEFT: toward the higher bits; RIGHT: toward the lower. Values:
                `LEFT`, `RIGHT`.

        Outputs:
            Z: The shape to which both inputs broadcast.
        """

    def BitwiseAnd(self, A: Operand, B: Operand, /, *, name: str = "") -> Value:
        """BitwiseAnd: The bits that are set in both elements.

        Inputs:
            A: The first operand.
            B: The second operand.

        Outputs:
            C: The shape to which both inputs broadcast.
        """

    def BitwiseNot(self, X: Operand, /, *, name: str = "") -> Value:
        """BitwiseNot: Each element with every bit inverted.

        Inputs:
            X: A tensor of any shape.

        Outputs:
            Y: The input's shape.
        """

    def BitwiseOr(self, A: Operand, B: Operand, /, *, name: str = "") -> Value:
        """BitwiseOr: The bits that are set in at least one of the two elements.

        Inputs:
            A: The first operand.
            B: The second operand.

        Outputs:
            C: The shape to which both inputs broadcast.
        """

    def BitwiseXor(self, A: Operand, B: Operand, /, *, name: str = "") -> Value:
        """BitwiseXor: The bits that are set in exactly one of the two elements.

        Inputs:
            A: The first operand.
            B: The second operand.

        Outputs:
            C: The shape to which both inputs broadcast.
        """

    def BlackmanWindow(
        self, size: Operand, /, *, periodic: IntLike | None = 1, output_datatype: ElementLike | None = 1,
        name: str = ""
    ) -> Value:
        """BlackmanWindow: `0.42 - 0.5 cos(t) + 0.08 cos(2t)`, with t from 0 to a full turn.

        Inputs:
            size: The number of elements of the window.

        Attributes:
            periodic (int, default 1): 1: t ends one step before the full turn; 0: at the full turn.
            output_datatype (int, default 1): The element type of the output. Values: `1` (float), `2`
                (uint8), `3` (int8), `4` (uint16), `5` (int16), `6` (int32), `7` (int64), `10`
                (float16), `11` (double), `12` (uint32), `13` (uint64), `16` (bfloat16).

        Outputs:
            output: The window, (size).
        """

    def Cast(
        self, input: Operand, /, *, to: ElementLike, saturate: IntLike | None = 1, round_mode: StringLike |
        None = 'up', name: str = ""
    ) -> Value:
        """Cast: The elements of `input` converted to the element type `to`.

        Inputs:
            input: A tensor of any shape.

        Attributes:
            to (int, required): A number of TensorProto.DataType. Values: `1` (float), `2` (uint8), `3`
                (int8), `4` (uint16), `5` (int16), `6` (int32), `7` (int64), `8` (string), `9` (bool),
                `10` (float16), `11` (double), `12` (uint32), `13` (uint64), `16` (bfloat16), `17`
                (float8e4m3fn), `18` (float8e4m3fnuz), `19` (float8e5m2), `20` (float8e5m2fnuz), `21`
                (uint4), `22` (int4), `23` (float4e2m1), `24` (float8e8m0), `25` (uint2), `26` (int2),
                `27` (float6e2m3), `28` (float6e3m2).
            saturate (int, default 1): For 8-bit floats, beyond the range: 1 the greatest; 0 infinity or
                NaN.
            round_mode (string, default 'up'): For float8e8m0: `up`, `down`, or `nearest` with ties up.
                Values: `up`, `down`, `nearest`.

        Outputs:
            output: The input's shape; integers wrap, floats are truncated.
        """

    def CastLike(
        self, input: Operand, target_type: Operand, /, *, saturate: IntLike | None = 1, round_mode: StringLike
        | None = 'up', name: str = ""
    ) -> Value:
        """CastLike: Each element converted, as by Cast, to the type of another tensor.

        Inputs:
            input: A tensor of any shape.
            target_type: Only its element type matters.

        Attributes:
            saturate (int, default 1): For 8-bit floats, beyond the range: 1 the greatest; 0 infinity or
                NaN.
            round_mode (string, default 'up'): For float8e8m0: `up`, `down`, or `nearest` with ties up.
                Values: `up`, `down`, `nearest`.

        Outputs:
            output: The shape of `input`.
        """

    def CausalConvWithState(
        self, input: Operand, weight: Operand, bias: Operand | None = None, past_state: Operand | None = None,
        /, *, activation: StringLike | None = 'none', outputs: Literal[2] = 2, name: str = ""
    ) -> tuple[Value, Value]:
        """CausalConvWithState: In each channel `y[t] = sum of w[j] x[t - k + 1 + j] + b`, with the
        elements before x as state.

        Inputs:
            input: (batch, channels, length).
            weight: (channels, 1, k).
            bias (optional): (channels); zeros by default.
            past_state (optional): The k - 1 elements before, (batch, channels, k - 1); zeros by
                default.

        Attributes:
            activation (string, default 'none'): silu or swish: `y sigmoid(y)`; or none. Values: `silu`,
                `swish`, `none`.

        Outputs:
            output: The shape of the input.
            present_state: The last k - 1 elements of `past_state` and `input` together.
        """

    def Ceil(self, X: Operand, /, *, name: str = "") -> Value:
        """Ceil: The least integer that is not below each element.

        Inputs:
            X: A tensor of any shape.

        Outputs:
            Y: The input's shape, of integers.
        """

    def Celu(self, X: Operand, /, *, alpha: FloatLike | None = 1.0, name: str = "") -> Value:
        """Celu: `x` where it is 0 or above, `alpha * (exp(x / alpha) - 1)` below.

        Inputs:
            X: A tensor of any shape.

        Attributes:
            alpha (float, default 1.0): The negative of the limit for `x` toward -infinity.

        Outputs:
            Y: The input's shape, nothing below `-alpha`.
        """

    def CenterCropPad(
        self, input_data: Operand, shape: Operand, /, *, axes: IntsLike | None = None, name: str = ""
    ) -> Value:
        """CenterCropPad: `input_data` with the sizes `shape`: a longer axis is cropped at both ends, a
        shorter one padded with zeros.

        Inputs:
            input_data: A tensor of any shape.
            shape: The new size of each axis in `axes`.

        Attributes:
            axes (ints, optional): The axes that change, from the back if negative; all by default.

        Outputs:
            output_data: The result; of an odd difference the greater part is cropped or padded at the
                end.
        """

    def Clip(
        self, input: Operand, min_: Operand | None = None, max_: Operand | None = None, /, *, max: FloatLike |
        None = None, min: FloatLike | None = None, name: str = ""
    ) -> Value:
        """Clip: Each element limited to [min, max]: `min(max(x, min), max)`; NaN stays NaN.

        Inputs:
            input: A tensor of any shape.
            min (optional): The lower limit, a scalar; none if absent.
            max (optional): The upper limit, a scalar; takes precedence.

        Attributes:
            max (float, up to version 6): The upper limit, which takes precedence.
            min (float, up to version 6): The lower limit.

        Outputs:
            output: The limited elements, in the shape of the input.
        """

    def Col2Im(
        self, input: Operand, image_shape: Operand, block_shape: Operand, /, *, strides: IntsLike | None =
        None, pads: IntsLike | None = None, dilations: IntsLike | None = None, name: str = ""
    ) -> Value:
        """Col2Im: An image to which each block is added at its position; the transpose of im2col.

        Inputs:
            input: The blocks, (N, C * b1 * ... * bn, L), in the order of their positions.
            image_shape: The image's spatial size, (D1, ..., Dn).
            block_shape: The blocks' size, (b1, ..., bn).

        Attributes:
            strides (ints, optional): The step between windows along each spatial axis; 1 by default.
                Values: 1 or more.
            pads (ints, optional): Padding at the beginning of each spatial axis, then at the end of
                each; 0 by default. Values: 0 or more.
            dilations (ints, optional): The step between the elements of a window along each spatial
                axis; 1 by default. Values: 1 or more.

        Outputs:
            output: The image, (N, C, D1, ..., Dn).
        """

    def Compress(
        self, input: Operand, condition: Operand, /, *, axis: IntLike | None = None, name: str = ""
    ) -> Value:
        """Compress: The slices of `input` along `axis`, or its elements, for which `condition` is true.

        Inputs:
            input: A tensor of rank 1 or more.
            condition: One flag for each slice, or element; those past its end are dropped.

        Attributes:
            axis (int, optional): The dimension to select from, from the back if negative; absent:
                elements.

        Outputs:
            output: The selected part; a vector without `axis`.
        """

    def Concat(self, *inputs: Operand, axis: IntLike, name: str = "") -> Value:
        """Concat: The inputs one after another along `axis`; their other dimensions must agree.

        Inputs:
            inputs (variadic): Tensors of one rank.

        Attributes:
            axis (int, required): The dimension, counted from the back if negative.

        Outputs:
            concat_result: Along `axis`, the sum of the inputs' sizes.
        """

    def ConcatFromSequence(
        self, input_sequence: Value, /, *, new_axis: IntLike | None = 0, axis: IntLike, name: str = ""
    ) -> Value:
        """ConcatFromSequence: The items of a sequence concatenated along `axis`, or stacked on a new axis
        there.

        Inputs:
            input_sequence: At least one tensor; shapes may differ along a concatenated axis.

        Attributes:
            new_axis (int, default 0): 1: stack on a new axis. Values: `0`, `1`.
            axis (int, required): The axis of the result, counted from the back if negative.

        Outputs:
            concat_result: The items as one tensor.
        """

    def Constant(
        self, *, sparse_value: SparseTensorLike | None = None, value: TensorLike | None = None, value_strings:
        StringsLike | None = None, value_string: StringLike | None = None, value_floats: FloatsLike | None =
        None, value_float: FloatLike | None = None, value_ints: IntsLike | None = None, value_int: IntLike |
        None = None, name: str = ""
    ) -> Value:
        """Constant: The tensor in the node's only attribute.

        Attributes:
            sparse_value (sparse_tensor, optional): The output, in sparse form.
            value (tensor, optional): The output itself.
            value_strings (strings, optional): The elements of a 1-D string tensor.
            value_string (string, optional): The element of a 0-D string tensor.
            value_floats (floats, optional): The elements of a 1-D float tensor.
            value_float (float, optional): The element of a 0-D float tensor.
            value_ints (ints, optional): The elements of a 1-D int64 tensor.
            value_int (int, optional): The element of a 0-D int64 tensor.

        Outputs:
            output: The attribute's tensor; a sparse one in its dense form.
        """

    def ConstantFill(
        self, input: Operand | None = None, /, *, value: FloatLike | None = 0.0, dtype: ElementLike | None =
        1, shape: IntsLike | None = None, input_as_shape: IntLike | None = None, extra_shape: IntsLike | None
        = None, name: str = ""
    ) -> Value:
        """ConstantFill: A tensor of `value`, in the shape of an attribute, of the input, or that the input
        contains.

        Inputs:
            input (optional): A tensor of the shape, or the shape if `input_as_shape` is set.

        Attributes:
            value (float, default 0.0): The number.
            dtype (int, default 1): The element type of the output, as a number of TensorProto.DataType;
                1 is float. Values: `1` (float), `6` (int32), `7` (int64), `9` (bool).
            shape (ints, optional): The shape where there is no input.
            input_as_shape (int, optional): 1: the contents of the input are the shape.
            extra_shape (ints, optional): Dimensions after those of the input.

        Outputs:
            output: The tensor.
        """

    def ConstantOfShape(self, input: Operand, /, *, value: TensorLike | None = None, name: str = "") -> Value:
        """ConstantOfShape: A tensor of the shape in `input`, `value` everywhere.

        Inputs:
            input: The sizes, none below 0; no sizes mean a 0-D tensor.

        Attributes:
            value (tensor, optional): One element; a float 0 when absent.

        Outputs:
            output: A tensor of that shape, of the type of `value`.
        """

    def Conv(
        self, X: Operand, W: Operand, B: Operand | None = None, /, *, group: IntLike | None = 1, pads:
        IntsLike | None = None, auto_pad: StringLike | None = 'NOTSET', strides: IntsLike | None = None,
        dilations: IntsLike | None = None, kernel_shape: IntsLike | None = None, name: str = ""
    ) -> Value:
        """Conv: For each window, the sum of its elements times the weights of a filter, plus a bias.

        Inputs:
            X: The input, (N, C, D1, ..., Dn).
            W: The filters, (M, C/group, k1, ..., kn).
            B (optional): The bias of each filter, (M).

        Attributes:
            group (int, default 1): The number of groups of channels; each has its own filters. Values:
                1 or more.
            pads (ints, optional): Padding at the beginning of each spatial axis, then at the end of
                each; 0 by default. Values: 0 or more.
            auto_pad (string, default 'NOTSET'): SAME_UPPER, SAME_LOWER: as much padding as makes O =
                ceil(D / stride), an odd element at the end or the beginning; VALID: no padding; NOTSET:
                `pads`. Values: `NOTSET`, `SAME_UPPER`, `SAME_LOWER`, `VALID`.
            strides (ints, optional): The step between windows along each spatial axis; 1 by default.
                Values: 1 or more.
            dilations (ints, optional): The step between the elements of a window along each spatial
                axis; 1 by default. Values: 1 or more.
            kernel_shape (ints, optional): The spatial shape of the filters, (k1, ..., kn); by default
                that of the weights. Values: 1 or more.

        Outputs:
            Y: One channel for each filter, (N, M, O1, ..., On).
        """

    def ConvInteger(
        self, x: Operand, w: Operand, x_zero_point: Operand | None = None, w_zero_point: Operand | None =
        None, /, *, group: IntLike | None = 1, pads: IntsLike | None = None, auto_pad: StringLike | None =
        'NOTSET', strides: IntsLike | None = None, dilations: IntsLike | None = None, kernel_shape: IntsLike |
        None = None, name: str = ""
    ) -> Value:
        """ConvInteger: `x - x_zero_point` convolved with `w - w_zero_point`, as int32, with overflow
        wrapping around.

        Inputs:
            x: The input, (N, C, D1, ..., Dn).
            w: The filters, (M, C/group, k1, ..., kn).
            x_zero_point (optional): The number in `x`, and in its padding, that represents 0: a scalar,
                0 by default.
            w_zero_point (optional): The number in `w` that represents 0: a scalar or (M), 0 by default.

        Attributes:
            group (int, default 1): The number of groups of channels; each has its own filters. Values:
                1 or more.
            pads (ints, optional): Padding at the beginning of each spatial axis, then at the end of
                each; 0 by default. Values: 0 or more.
            auto_pad (string, default 'NOTSET'): SAME_UPPER, SAME_LOWER: as much padding as makes O =
                ceil(D / stride), an odd element at the end or the beginning; VALID: no padding; NOTSET:
                `pads`. Values: `NOTSET`, `SAME_UPPER`, `SAME_LOWER`, `VALID`.
            strides (ints, optional): The step between windows along each spatial axis; 1 by default.
                Values: 1 or more.
            dilations (ints, optional): The step between the elements of a window along each spatial
                axis; 1 by default. Values: 1 or more.
            kernel_shape (ints, optional): The spatial shape of the filters, (k1, ..., kn); by default
                that of the weights. Values: 1 or more.

        Outputs:
            y: One channel for each filter, (N, M, O1, ..., On).
        """

    def ConvTranspose(
        self, X: Operand, W: Operand, B: Operand | None = None, /, *, group: IntLike | None = 1, auto_pad:
        StringLike | None = 'NOTSET', strides: IntsLike | None = None, pads: IntsLike | None = None,
        output_padding: IntsLike | None = None, dilations: IntsLike | None = None, output_shape: IntsLike |
        None = None, kernel_shape: IntsLike | None = None, name: str = ""
    ) -> Value:
        """ConvTranspose: The transpose of a convolution: each input element, times the weights, is added
        to its window.

        Inputs:
            X: The input, (N, C, D1, ..., Dn).
            W: The weights, (C, M/group, k1, ..., kn).
            B (optional): The bias of each output channel, (M).

        Attributes:
            group (int, default 1): The number of groups of channels; each has its own filters. Values:
                1 or more.
            auto_pad (string, default 'NOTSET'): SAME_UPPER, SAME_LOWER: as much padding as makes O = D
                * stride, an odd element at the end or the beginning; VALID: no padding; NOTSET: `pads`.
                Values: `NOTSET`, `SAME_UPPER`, `SAME_LOWER`, `VALID`.
            strides (ints, optional): The step between windows along each spatial axis; 1 by default.
                Values: 1 or more.
            pads (ints, optional): Elements to remove at the beginning of each spatial axis of the
                output, then at the end of each; 0 by default. Values: 0 or more.
            output_padding (ints, optional): Elements to add at the end of each spatial axis of the
                output; 0 by default. Values: 0 or more.
            dilations (ints, optional): The step between the elements of a window along each spatial
                axis; 1 by default. Values: 1 or more.
            output_shape (ints, optional): (O1, ..., On), which determines the padding; an odd element
                is at the beginning unless `auto_pad` is SAME_UPPER. Values: 0 or more.
            kernel_shape (ints, optional): The spatial shape of the filters, (k1, ..., kn); by default
                that of the weights. Values: 1 or more.

        Outputs:
            Y: (N, M, O1, ..., On), O = stride * (D - 1) + dilation * (k - 1) + 1 + output_padding -
                pads.
        """

    def Cos(self, input: Operand, /, *, name: str = "") -> Value:
        """Cos: The cosine of each element, an angle in radians.

        Inputs:
            input: Angles, in a tensor of any shape.

        Outputs:
            output: The input's shape; every value between -1 and 1.
        """

    def Cosh(self, input: Operand, /, *, name: str = "") -> Value:
        """Cosh: The hyperbolic cosine of each element: `(exp(x) + exp(-x)) / 2`.

        Inputs:
            input: A tensor of any shape.

        Outputs:
            output: The input's shape, nothing below 1.
        """

    def Crop(
        self, input: Operand, /, *, border: IntsLike | None = None, scale: IntsLike | None = None, name: str =
        ""
    ) -> Value:
        """Crop: Images without borders, or the part of a size at the upper left borders.

        Inputs:
            input: (N, C, H, W).

        Attributes:
            border (ints, optional): The elements to remove: left, top, right, bottom. Values: 0 or
                more.
            scale (ints, optional): The height and width that are left, whatever right and bottom are.
                Values: 0 or more.

        Outputs:
            output: The parts, (N, C, height, width).

        Removed with opset 10.
        """

    def CumProd(
        self, x: Operand, axis: Operand, /, *, reverse: IntLike | None = 0, exclusive: IntLike | None = 0,
        name: str = ""
    ) -> Value:
        """CumProd: Each element times all before it along `axis`: `y[i] = x[0] * ... * x[i]`.

        Inputs:
            x: A tensor of rank 1 or more.
            axis: The axis to accumulate along: one number in [-rank, rank-1].

        Attributes:
            reverse (int, default 0): 1: accumulate from the end of the axis.
            exclusive (int, default 0): 1: exclude the element itself; the first result is 1.

        Outputs:
            y: The cumulative products, in the shape of `x`.
        """

    def CumSum(
        self, x: Operand, axis: Operand, /, *, reverse: IntLike | None = 0, exclusive: IntLike | None = 0,
        name: str = ""
    ) -> Value:
        """CumSum: Each element plus all before it along `axis`: `y[i] = x[0] + ... + x[i]`.

        Inputs:
            x: A tensor of rank 1 or more.
            axis: The axis to accumulate along: one number in [-rank, rank-1].

        Attributes:
            reverse (int, default 0): 1: accumulate from the end of the axis.
            exclusive (int, default 0): 1: exclude the element itself; the first result is 0.

        Outputs:
            y: The cumulative sums, in the shape of `x`.
        """

    def DFT(
        self, input: Operand, dft_length: Operand | None = None, axis_: Operand | None = None, /, *, inverse:
        IntLike | None = 0, onesided: IntLike | None = 0, axis: IntLike | None = None, name: str = ""
    ) -> Value:
        """DFT: The spectrum `y[k] = sum of x[n] exp(-2 pi i k n / N)` along an axis, or the inverse.

        Inputs:
            input: Signals; the last dimension is the real part, or the real and imaginary parts.
            dft_length (optional): N, to which the signal is truncated or padded with zeros; its length
                by default.
            axis (optional): The axis of the signal, not the last one; -2 by default.

        Attributes:
            inverse (int, default 0): 1: from a spectrum to its signal, with the factor 1 / N.
            onesided (int, default 0): 1: the spectrum of a real signal has only the first N // 2 + 1
                frequencies.
            axis (int, up to version 17): The axis of the signal; not the last.

        Outputs:
            output: Complex numbers as two parts in the last dimension; one real part for an inverse
                `onesided`.
        """

    def DeformConv(
        self, X: Operand, W: Operand, offset: Operand, B: Operand | None = None, mask: Operand | None = None,
        /, *, strides: IntsLike | None = None, pads: IntsLike | None = None, offset_group: IntLike | None = 1,
        kernel_shape: IntsLike | None = None, group: IntLike | None = 1, dilations: IntsLike | None = None,
        name: str = ""
    ) -> Value:
        """DeformConv: A convolution in which each weight reads the input at its position plus an offset,
        with linear interpolation between pixels, times a mask.

        Inputs:
            X: The input, (N, C, D1, ..., Dn).
            W: The filters, (M, C/group, k1, ..., kn).
            offset: The n coordinates of each weight of each offset group, (N, og * k1...kn * n, O1,
                ..., On).
            B (optional): The bias of each filter, (M).
            mask (optional): A factor for each weight, (N, og * k1...kn, O1, ..., On); 1 by default.

        Attributes:
            strides (ints, optional): The step between windows along each spatial axis; 1 by default.
                Values: 1 or more.
            pads (ints, optional): Padding at the beginning of each spatial axis, then at the end of
                each; 0 by default. Values: 0 or more.
            offset_group (int, default 1): The number of groups of channels, each with its own offsets.
                Values: 1 or more.
            kernel_shape (ints, optional): The spatial shape of the filters, (k1, ..., kn); by default
                that of the weights. Values: 1 or more.
            group (int, default 1): The number of groups of channels; each has its own filters. Values:
                1 or more.
            dilations (ints, optional): The step between the elements of a window along each spatial
                axis; 1 by default. Values: 1 or more.

        Outputs:
            Y: One channel for each filter, (N, M, O1, ..., On).
        """

    def DepthToSpace(
        self, input: Operand, /, *, blocksize: IntLike, mode: StringLike | None = 'DCR', name: str = ""
    ) -> Value:
        """DepthToSpace: Each pixel of `input` becomes a block of `blocksize` by `blocksize` pixels with
        part of its depth; the inverse of SpaceToDepth.

        Inputs:
            input: Images of the shape [N, C, H, W].

        Attributes:
            blocksize (int, required): The height and the width of a block. Values: 1 or more.
            mode (string, default 'DCR'): DCR: the position in the block is the outer part of the depth;
                CRD: the inner part. Values: `DCR`, `CRD`.

        Outputs:
            output: Images of the shape [N, C / blocksize**2, H * blocksize, W * blocksize].
        """

    def DequantizeLinear(
        self, x: Operand, x_scale: Operand, x_zero_point: Operand | None = None, /, *, axis: IntLike | None =
        1, block_size: IntLike | None = 0, output_dtype: ElementLike | None = 0, name: str = ""
    ) -> Value:
        """DequantizeLinear: `(x - x_zero_point) * x_scale`, in the type of the scale or `output_dtype`.

        Inputs:
            x: A tensor of any shape.
            x_scale: The scale of `x`: a scalar, a vector along `axis`, or one for each block.
            x_zero_point (optional): The number that represents 0, in the shape of `x_scale`; 0 by
                default.

        Attributes:
            axis (int, default 1): The axis along which scales differ, if they do.
            block_size (int, default 0): The number of elements along `axis` that share a scale; 0: no
                blocks. Values: 0 or more.
            output_dtype (int, default 0): The output's type, as a number of TensorProto.DataType; 0:
                the scale's. Values: `0` (as if absent), `1` (float), `10` (float16), `16` (bfloat16).

        Outputs:
            y: The input's shape.
        """

    def Det(self, X: Operand, /, *, name: str = "") -> Value:
        """Det: The determinant of each square matrix in the last two dimensions.

        Inputs:
            X: Shape (..., M, M).

        Outputs:
            Y: Shape (...), a scalar for one matrix.
        """

    def Div(
        self, A: Operand, B: Operand, /, *, axis: IntLike | None = None, broadcast: IntLike | None = None,
        name: str = ""
    ) -> Value:
        """Div: The quotient of two tensors, elementwise: `A / B`; integers are truncated toward zero.

        Inputs:
            A: The dividend.
            B: The divisor; integers divided by 0 are 0.

        Attributes:
            axis (int, up to version 6): The axis of `A` at which the dimensions of `B` begin; by
                default they are its last.
            broadcast (int, up to version 6): 1: `B` is broadcast to the shape of `A`.

        Outputs:
            C: The shape to which both inputs broadcast.
        """

    @overload
    def Dropout(
        self, data: Operand, ratio_: Operand | None = None, training_mode: Operand | None = None, /, *, seed:
        IntLike | None = None, ratio: FloatLike | None = None, is_test: IntLike | None = None, outputs:
        Literal[1] = 1, name: str = ""
    ) -> Value:
        """Dropout: A copy of `data`; while training, 0 with probability `ratio`, else `data / (1 -
        ratio)`.

        Inputs:
            data: A tensor of any shape.
            ratio (optional): A scalar in [0, 1), 0.5 if absent.
            training_mode (optional): A scalar: true to drop elements.

        Attributes:
            seed (int, optional): The seed of the generator; without it, each run differs.
            ratio (float, up to version 10): The probability of dropping an element.
            is_test (int, up to version 6): Nonzero: nothing is dropped.

        Outputs:
            output: The input's shape.
            mask (optional): Which elements are kept.
        """
    @overload
    def Dropout(
        self, data: Operand, ratio_: Operand | None = None, training_mode: Operand | None = None, /, *, seed:
        IntLike | None = None, ratio: FloatLike | None = None, is_test: IntLike | None = None, outputs:
        Literal[2], name: str = ""
    ) -> tuple[Value, Value]: ...
    @overload
    def Dropout(
        self, data: Operand, ratio_: Operand | None = None, training_mode: Operand | None = None, /, *, seed:
        IntLike | None = None, ratio: FloatLike | None = None, is_test: IntLike | None = None, outputs: int,
        name: str = ""
    ) -> Any: ...

    def DynamicQuantizeLinear(
        self, x: Operand, /, *, outputs: Literal[3] = 3, name: str = ""
    ) -> tuple[Value, Value, Value]:
        """DynamicQuantizeLinear: `x` as uint8, where 0 to 255 represent its range, extended to 0; its
        scale and zero point.

        Inputs:
            x: A tensor of any shape.

        Outputs:
            y: The input's shape: `saturate(round(x / y_scale) + y_zero_point)`.
            y_scale: A scalar: `(max(0, x) - min(0, x)) / 255`.
            y_zero_point: A scalar: `round(saturate(-min(0, x) / y_scale))`.
        """

    def DynamicSlice(
        self, data: Operand, starts: Operand, ends: Operand, axes: Operand | None = None, /, *, name: str = ""
    ) -> Value:
        """DynamicSlice: The part of `data` from `starts` up to `ends`, along each of `axes`.

        Inputs:
            data: A tensor of any shape.
            starts: The first index on each axis; from the back if negative, clamped.
            ends: The exclusive end on each axis; from the back if negative, clamped.
            axes (optional): The axes to slice; the first ones when absent.

        Outputs:
            output: The part, of the rank of `data`.

        Removed with opset 10.
        """

    def Einsum(self, *Inputs: Operand, equation: StringLike, name: str = "") -> Value:
        """Einsum: Products of the inputs' elements, summed over every label that the output lacks:
        `ij,jk->ik` is the matrix product.

        Inputs:
            Inputs (variadic): One operand per term.

        Attributes:
            equation (string, required): Terms of letters, one letter per dimension, `...` for the rest;
                then an arrow and the output, by default the labels that occur once, in alphabetical
                order.

        Outputs:
            Output: One dimension per label after the arrow.
        """

    def Elu(self, X: Operand, /, *, alpha: FloatLike | None = 1.0, name: str = "") -> Value:
        """Elu: `x` where it is 0 or above, `alpha * (exp(x) - 1)` below.

        Inputs:
            X: A tensor of any shape.

        Attributes:
            alpha (float, default 1.0): The negative of the limit for `x` toward -infinity.

        Outputs:
            Y: The input's shape, nothing below `-alpha`.
        """

    def Equal(
        self, A: Operand, B: Operand, /, *, axis: IntLike | None = None, broadcast: IntLike | None = None,
        name: str = ""
    ) -> Value:
        """Equal: Whether `A` equals `B`, elementwise; NaN equals nothing.

        Inputs:
            A: The first operand.
            B: The second operand.

        Attributes:
            axis (int, up to version 1): The axis of `A` at which the dimensions of `B` begin; by
                default they are its last.
            broadcast (int, up to version 1): 1: `B` is broadcast to the shape of `A`.

        Outputs:
            C: The shape to which both inputs broadcast.
        """

    def Erf(self, input: Operand, /, *, name: str = "") -> Value:
        """Erf: The error function of each element: `2/sqrt(pi)` times the integral of `exp(-t*t)` from 0.

        Inputs:
            input: A tensor of any shape.

        Outputs:
            output: The input's shape; every value between -1 and 1.
        """

    def Exp(self, input: Operand, /, *, name: str = "") -> Value:
        """Exp: The exponential of each element.

        Inputs:
            input: A tensor of any shape.

        Outputs:
            output: The input's shape, nothing below 0.
        """

    def Expand(self, input: Operand, shape: Operand, /, *, name: str = "") -> Value:
        """Expand: `input` broadcast against `shape`, as numpy does, in both directions.

        Inputs:
            input: A tensor of any shape.
            shape: Aligned with `input` at the last dimension.

        Outputs:
            output: The broadcast shape, which may be larger than `shape`.
        """

    def EyeLike(
        self, input: Operand, /, *, dtype: ElementLike | None = None, k: IntLike | None = 0, name: str = ""
    ) -> Value:
        """EyeLike: Ones on the diagonal `k` and zeros elsewhere, in the shape of `input`: numpy's `eye`.

        Inputs:
            input: A matrix, for its shape and its element type.

        Attributes:
            dtype (int, optional): The element type of the output; by default that of `input`. Values:
                `1` (float), `2` (uint8), `3` (int8), `4` (uint16), `5` (int16), `6` (int32), `7`
                (int64), `9` (bool), `10` (float16), `11` (double), `12` (uint32), `13` (uint64), `16`
                (bfloat16).
            k (int, default 0): The diagonal: 0 the main one, above it if positive.

        Outputs:
            output: `output[i, i + k]` is 1.
        """

    def Flatten(self, input: Operand, /, *, axis: IntLike | None = 1, name: str = "") -> Value:
        """Flatten: A matrix whose rows run over the dimensions before `axis`, its columns over the rest.

        Inputs:
            input: A tensor whose rank is at least `axis`.

        Attributes:
            axis (int, default 1): The first dimension of the columns, from -rank up to the rank itself.

        Outputs:
            output: The same elements, as a matrix.
        """

    def Floor(self, X: Operand, /, *, name: str = "") -> Value:
        """Floor: The greatest integer that is not above each element.

        Inputs:
            X: A tensor of any shape.

        Outputs:
            Y: The input's shape, of integers.
        """

    @overload
    def GRU(
        self, X: Operand, W: Operand, R: Operand, B: Operand | None = None, sequence_lens: Operand | None =
        None, initial_h: Operand | None = None, /, *, clip: FloatLike | None = None, activation_beta:
        FloatsLike | None = None, activation_alpha: FloatsLike | None = None, hidden_size: IntLike | None =
        None, direction: StringLike | None = 'forward', activations: StringsLike | None = None,
        linear_before_reset: IntLike | None = 0, layout: IntLike | None = 0, output_sequence: IntLike | None =
        None, outputs: Literal[1] = 1, name: str = ""
    ) -> Value:
        """GRU: A gated recurrent unit, step by step: `h = (1 - z) g + z h'` after the state `h'`, where
        `z, r = sigmoid(W x + R h' + b)` and `g = tanh(W x + R (r h') + b)`.

        Inputs:
            X: Shape (time, batch, input).
            W: Shape (directions, 3 hidden, input): for z, r, g.
            R: Shape (directions, 3 hidden, hidden): for z, r, g.
            B (optional): (directions, 6 hidden): biases of W, then of R.
            sequence_lens (optional): (batch): the number of steps of each sequence.
            initial_h (optional): Shape (directions, batch, hidden).

        Attributes:
            clip (float, optional): The inputs of the activation functions are limited to [-clip, clip];
                0: no limit.
            activation_beta (floats, optional): The second parameters of those activation functions that
                have two, in order.
            activation_alpha (floats, optional): The first parameters of those activation functions that
                have one, in order.
            hidden_size (int, optional): The size of h, which the shape of R states too.
            direction (string, default 'forward'): forward, reverse or bidirectional. Values: `forward`,
                `reverse`, `bidirectional`.
            activations (strings, optional): Of z and r, and of g, for each direction; Sigmoid, Tanh by
                default. Values: `Relu`, `Tanh`, `Sigmoid`, `Affine`, `LeakyRelu`, `ThresholdedRelu`,
                `ScaledTanh`, `HardSigmoid`, `Elu`, `Softsign`, `Softplus`.
            linear_before_reset (int, default 0): 1: `g = tanh(W x + r (R h' + b_R) + b_W)`.
            layout (int, default 0): 1: the batch is the first dimension of X, of the states and of the
                outputs. Values: `0`, `1`.
            output_sequence (int, up to version 3): 0: Y may be omitted.

        Outputs:
            Y (optional): (time, directions, batch, hidden): every h.
            Y_h (optional): (directions, batch, hidden): the last h.
        """
    @overload
    def GRU(
        self, X: Operand, W: Operand, R: Operand, B: Operand | None = None, sequence_lens: Operand | None =
        None, initial_h: Operand | None = None, /, *, clip: FloatLike | None = None, activation_beta:
        FloatsLike | None = None, activation_alpha: FloatsLike | None = None, hidden_size: IntLike | None =
        None, direction: StringLike | None = 'forward', activations: StringsLike | None = None,
        linear_before_reset: IntLike | None = 0, layout: IntLike | None = 0, output_sequence: IntLike | None =
        None, outputs: Literal[2], name: str = ""
    ) -> tuple[Value, Value]: ...
    @overload
    def GRU(
        self, X: Operand, W: Operand, R: Operand, B: Operand | None = None, sequence_lens: Operand | None =
        None, initial_h: Operand | None = None, /, *, clip: FloatLike | None = None, activation_beta:
        FloatsLike | None = None, activation_alpha: FloatsLike | None = None, hidden_size: IntLike | None =
        None, direction: StringLike | None = 'forward', activations: StringsLike | None = None,
        linear_before_reset: IntLike | None = 0, layout: IntLike | None = 0, output_sequence: IntLike | None =
        None, outputs: int, name: str = ""
    ) -> Any: ...

    def GRUUnit(
        self, hidden_prev: Operand, gates: Operand, seq_lengths: Operand, t: Operand, /, *, drop_states:
        IntLike | None = None, name: str = ""
    ) -> Value:
        """GRUUnit: `u * hidden_prev + (1 - u) * tanh(o)` of the gates `u`, after a logistic function, and
        `o`; past the end of a sequence the state before, or 0.

        Inputs:
            hidden_prev: The state before, (N, D) or (1, N, D).
            gates: The gates forget, update and output before their activations, (..., N, 3 * D); the
                forget gate is already in the output gate, and not read.
            seq_lengths: The length of each sequence, (N).
            t: The number of the step, a scalar.

        Attributes:
            drop_states (int, optional): 1: the state past the end of a sequence is 0; else that before.

        Outputs:
            hidden: The new state, in the shape of the one before.

        Removed with opset 10.
        """

    def Gather(
        self, data: Operand, indices: Operand, /, *, axis: IntLike | None = 0, name: str = ""
    ) -> Value:
        """Gather: The slices of `data` along `axis` at `indices`: numpy's `take(data, indices, axis)`.

        Inputs:
            data: A tensor of rank 1 or more.
            indices: Of any shape; -1 is the last along `axis`.

        Attributes:
            axis (int, default 0): The dimension to index, counted from the back if negative.

        Outputs:
            output: The shape of `data`, that of `indices` replacing `axis`.
        """

    def GatherElements(
        self, data: Operand, indices: Operand, /, *, axis: IntLike | None = 0, name: str = ""
    ) -> Value:
        """GatherElements: One element of `data` for each index: at i, j `data[i, indices[i, j]]` where
        `axis` is 1.

        Inputs:
            data: A tensor of rank 1 or more.
            indices: Of the rank of `data`; -1 is the last along `axis`.

        Attributes:
            axis (int, default 0): The dimension to index, counted from the back if negative.

        Outputs:
            output: One element for each index.
        """

    def GatherND(
        self, data: Operand, indices: Operand, /, *, batch_dims: IntLike | None = 0, name: str = ""
    ) -> Value:
        """GatherND: The part of `data` at each tuple, a last row of `indices`: at i, `data[*indices[i]]`.

        Inputs:
            data: A tensor of rank 1 or more.
            indices: Tuples along the last dimension, each of indices into the first axes of `data`; -1
                is the last.

        Attributes:
            batch_dims (int, default 0): The number of leading batch dimensions.

        Outputs:
            output: `indices.shape[:-1]`, then the axes that no tuple indexes.
        """

    def Gelu(self, X: Operand, /, *, approximate: StringLike | None = 'none', name: str = "") -> Value:
        """Gelu: `x` times the normal distribution function: `0.5 * x * (1 + erf(x / sqrt(2)))`.

        Inputs:
            X: A tensor of any shape.

        Attributes:
            approximate (string, default 'none'): 'tanh': `0.5 * x * (1 + tanh(sqrt(2/pi) * (x +
                0.044715 * x**3)))`; 'none': exact. Values: `none`, `tanh`.

        Outputs:
            Y: The input's shape.
        """

    def Gemm(
        self, A: Operand, B: Operand, C: Operand | None = None, /, *, beta: FloatLike | None = 1.0, transB:
        IntLike | None = 0, alpha: FloatLike | None = 1.0, transA: IntLike | None = 0, broadcast: IntLike |
        None = None, name: str = ""
    ) -> Value:
        """Gemm: `alpha * A' @ B' + beta * C`; A' and B' are A and B, transposed if `transA`, `transB`.

        Inputs:
            A: Shape (M, K), or (K, M) with `transA`.
            B: Shape (K, N), or (N, K) with `transB`.
            C (optional): The summand, of a shape that broadcasts to (M, N).

        Attributes:
            beta (float, default 1.0): The factor of C; with 0, C is not read.
            transB (int, default 0): 1: B is transposed first.
            alpha (float, default 1.0): The factor of the product.
            transA (int, default 0): 1: A is transposed first.
            broadcast (int, up to version 6): 0: C must have the shape (M, N).

        Outputs:
            Y: Shape (M, N).
        """

    def GivenTensorFill(
        self, shape_: Operand | None = None, /, *, values: FloatsLike | None = None, shape: IntsLike | None =
        None, input_as_shape: IntLike | None = None, extra_shape: IntsLike | None = None, name: str = ""
    ) -> Value:
        """GivenTensorFill: The tensor with these `values` in row-major order.

        Inputs:
            shape (optional): A tensor of the shape, or the shape if `input_as_shape` is set.

        Attributes:
            values (floats, optional): The elements; none if absent.
            shape (ints, optional): The shape where there is no input.
            input_as_shape (int, optional): 1: the contents of the input are the shape.
            extra_shape (ints, optional): Dimensions after those of the input.

        Outputs:
            X: The tensor; float without an input.

        Removed with opset 10.
        """

    def GlobalAveragePool(self, X: Operand, /, *, name: str = "") -> Value:
        """GlobalAveragePool: The mean of each channel over all spatial axes.

        Inputs:
            X: The input, (N, C, D1, ..., Dn).

        Outputs:
            Y: One mean for each channel, (N, C, 1, ..., 1).
        """

    def GlobalLpPool(self, X: Operand, /, *, p: IntLike | FloatLike | None = 2, name: str = "") -> Value:
        """GlobalLpPool: The p-norm of each channel over all spatial axes: `sum(|X| ** p) ** (1 / p)`.

        Inputs:
            X: The input, (N, C, D1, ..., Dn).

        Attributes:
            p (int, default 2): The order of the norm, above 0. Values: above 0.

        Outputs:
            Y: One norm for each channel, (N, C, 1, ..., 1).
        """

    def GlobalMaxPool(self, X: Operand, /, *, name: str = "") -> Value:
        """GlobalMaxPool: The greatest element of each channel over all spatial axes.

        Inputs:
            X: The input, (N, C, D1, ..., Dn).

        Outputs:
            Y: One maximum for each channel, (N, C, 1, ..., 1).
        """

    def Greater(
        self, A: Operand, B: Operand, /, *, axis: IntLike | None = None, broadcast: IntLike | None = None,
        name: str = ""
    ) -> Value:
        """Greater: Whether `A > B`, elementwise; false for NaN.

        Inputs:
            A: The first operand.
            B: The second operand.

        Attributes:
            axis (int, up to version 1): The axis of `A` at which the dimensions of `B` begin; by
                default they are its last.
            broadcast (int, up to version 1): 1: `B` is broadcast to the shape of `A`.

        Outputs:
            C: The shape to which both inputs broadcast.
        """

    def GreaterOrEqual(self, A: Operand, B: Operand, /, *, name: str = "") -> Value:
        """GreaterOrEqual: Whether `A >= B`, elementwise; false for NaN.

        Inputs:
            A: The first operand.
            B: The second operand.

        Outputs:
            C: The shape to which both inputs broadcast.
        """

    def GridSample(
        self, X: Operand, grid: Operand, /, *, align_corners: IntLike | None = 0, padding_mode: StringLike |
        None = 'zeros', mode: StringLike | None = 'linear', name: str = ""
    ) -> Value:
        """GridSample: The image `X` sampled at the coordinates in `grid`, which range from -1 to 1.

        Inputs:
            X: Images, [N, C, d1, ..., dr]; [N, C, H, W] before opset 20.
            grid: Coordinates, [N, D1, ..., Dr, r], that of the last dimension first.

        Attributes:
            align_corners (int, default 0): 1: -1 and 1 are the centres of the first and the last pixel,
                0: their outer edges.
            padding_mode (string, default 'zeros'): The pixels outside: zeros, the nearest pixel
                (border), or the mirrored image (reflection). Values: `zeros`, `border`, `reflection`.
            mode (string, default 'linear'): nearest, with ties to even; linear; or cubic. Before opset
                20 bilinear and bicubic. Values: `linear`, `nearest`, `cubic`.

        Outputs:
            Y: The samples, [N, C, D1, ..., Dr]; those of integer images are truncated.
        """

    def GroupNormalization(
        self, X: Operand, scale: Operand, bias: Operand, /, *, num_groups: IntLike, epsilon: FloatLike | None
        = 1e-05, stash_type: ElementLike | None = 1, name: str = ""
    ) -> Value:
        """GroupNormalization: `scale * (X - mean) / sqrt(var + epsilon) + bias`, over each group of
        channels.

        Inputs:
            X: The input, (N, C, D1, ..., Dn).
            scale: The factor of each channel, (C).
            bias: The bias of each channel, (C).

        Attributes:
            num_groups (int, required): The number of groups. Values: 1 or more.
            epsilon (float, default 1e-05): Added to the variance, so that it is not 0.
            stash_type (int, default 1): The type to normalise in, as a number of TensorProto.DataType,
                before scale and bias. Values: `1` (float), `10` (float16), `11` (double), `16`
                (bfloat16).

        Outputs:
            Y: The input's shape.
        """

    def HammingWindow(
        self, size: Operand, /, *, periodic: IntLike | None = 1, output_datatype: ElementLike | None = 1,
        name: str = ""
    ) -> Value:
        """HammingWindow: `25/46 - 21/46 cos(t)`, with t from 0 to a full turn.

        Inputs:
            size: The number of elements of the window.

        Attributes:
            periodic (int, default 1): 1: t ends one step before the full turn; 0: at the full turn.
            output_datatype (int, default 1): The element type of the output. Values: `1` (float), `2`
                (uint8), `3` (int8), `4` (uint16), `5` (int16), `6` (int32), `7` (int64), `10`
                (float16), `11` (double), `12` (uint32), `13` (uint64), `16` (bfloat16).

        Outputs:
            output: The window, (size).
        """

    def HannWindow(
        self, size: Operand, /, *, periodic: IntLike | None = 1, output_datatype: ElementLike | None = 1,
        name: str = ""
    ) -> Value:
        """HannWindow: `(1 - cos(t)) / 2`, with t from 0 to a full turn.

        Inputs:
            size: The number of elements of the window.

        Attributes:
            periodic (int, default 1): 1: t ends one step before the full turn; 0: at the full turn.
            output_datatype (int, default 1): The element type of the output. Values: `1` (float), `2`
                (uint8), `3` (int8), `4` (uint16), `5` (int16), `6` (int32), `7` (int64), `10`
                (float16), `11` (double), `12` (uint32), `13` (uint64), `16` (bfloat16).

        Outputs:
            output: The window, (size).
        """

    def HardSigmoid(
        self, X: Operand, /, *, beta: FloatLike | None = 0.5, alpha: FloatLike | None = 0.2, name: str = ""
    ) -> Value:
        """HardSigmoid: A linear function limited to [0, 1]: `max(0, min(1, alpha * x + beta))`.

        Inputs:
            X: A tensor of any shape.

        Attributes:
            beta (float, default 0.5): The value at 0.
            alpha (float, default 0.2): The slope between the limits.

        Outputs:
            Y: The input's shape, within [0, 1]; NaN stays NaN.
        """

    def HardSwish(self, X: Operand, /, *, name: str = "") -> Value:
        """HardSwish: `x * max(0, min(1, x / 6 + 0.5))`.

        Inputs:
            X: A tensor of any shape.

        Outputs:
            Y: The input's shape: 0 up to -3, the input from 3 on.
        """

    def Hardmax(self, input: Operand, /, *, axis: IntLike | None = -1, name: str = "") -> Value:
        """Hardmax: 1 at the first greatest element along `axis`, 0 elsewhere; NaN counts as greatest.

        Inputs:
            input: A tensor of any rank.

        Attributes:
            axis (int, default -1): The dimension along which one element is 1.

        Outputs:
            output: The input's shape, of zeros and ones.
        """

    def Identity(self, input: Operand, /, *, name: str = "") -> Value:
        """Identity: The input, unchanged.

        Inputs:
            input: Any value.

        Outputs:
            output: The same value.
        """

    @overload
    def If(
        self, cond: Operand, /, *, else_branch: GraphLike, then_branch: GraphLike, outputs: Literal[1] = 1,
        name: str = ""
    ) -> Value:
        """If: The outputs of `then_branch` where `cond` is true, else those of `else_branch`.

        Inputs:
            cond: One element: the condition.

        Attributes:
            else_branch (graph, required): Run where `cond` is false; has no inputs.
            then_branch (graph, required): Run where `cond` is true; has no inputs.

        Outputs:
            outputs (variadic): The outputs of the chosen branch.
        """
    @overload
    def If(
        self, cond: Operand, /, *, else_branch: GraphLike, then_branch: GraphLike, outputs: Literal[2], name:
        str = ""
    ) -> tuple[Value, Value]: ...
    @overload
    def If(
        self, cond: Operand, /, *, else_branch: GraphLike, then_branch: GraphLike, outputs: Literal[3], name:
        str = ""
    ) -> tuple[Value, Value, Value]: ...
    @overload
    def If(
        self, cond: Operand, /, *, else_branch: GraphLike, then_branch: GraphLike, outputs: Literal[4], name:
        str = ""
    ) -> tuple[Value, Value, Value, Value]: ...
    @overload
    def If(
        self, cond: Operand, /, *, else_branch: GraphLike, then_branch: GraphLike, outputs: int, name: str =
        ""
    ) -> Any: ...

    def ImageDecoder(
        self, encoded_stream: Operand, /, *, pixel_format: StringLike | None = 'RGB', name: str = ""
    ) -> Value:
        """ImageDecoder: The pixels of a BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP file, row by row.

        Inputs:
            encoded_stream: The bytes of the file.

        Attributes:
            pixel_format (string, default 'RGB'): RGB, BGR or Grayscale. Values: `RGB`, `BGR`,
                `Grayscale`.

        Outputs:
            image: (height, width, channels); (0, 0, channels) if the file is not an image.
        """

    def ImageScaler(
        self, input: Operand, /, *, bias: FloatsLike | None = None, scale: FloatLike | None = 1.0, name: str =
        ""
    ) -> Value:
        """ImageScaler: `scale * input + bias`, with a bias for each channel.

        Inputs:
            input: (N, C, H, W).

        Attributes:
            bias (floats, optional): One number for each channel; none are 0.
            scale (float, default 1.0): The factor.

        Outputs:
            output: The input's shape.

        Removed with opset 10.
        """

    def InstanceNormalization(
        self, input: Operand, scale: Operand, B: Operand, /, *, epsilon: FloatLike | None = 1e-05, name: str =
        ""
    ) -> Value:
        """InstanceNormalization: `scale * (input - mean) / sqrt(var + epsilon) + B`, over the spatial axes
        of each channel.

        Inputs:
            input: The input, (N, C, D1, ..., Dn).
            scale: The factor of each channel, (C).
            B: The bias of each channel, (C).

        Attributes:
            epsilon (float, default 1e-05): Added to the variance, so that it is not 0.

        Outputs:
            output: The input's shape.
        """

    def IsInf(
        self, X: Operand, /, *, detect_negative: IntLike | None = 1, detect_positive: IntLike | None = 1,
        name: str = ""
    ) -> Value:
        """IsInf: Whether each element is infinite, with one of the detected signs.

        Inputs:
            X: A tensor of any shape.

        Attributes:
            detect_negative (int, default 1): 0: -infinity does not count.
            detect_positive (int, default 1): 0: +infinity does not count.

        Outputs:
            Y: The input's shape.
        """

    def IsNaN(self, X: Operand, /, *, name: str = "") -> Value:
        """IsNaN: Whether each element is NaN.

        Inputs:
            X: A tensor of any shape.

        Outputs:
            Y: The input's shape.
        """

    def LRN(
        self, X: Operand, /, *, bias: FloatLike | None = 1.0, beta: FloatLike | None = 0.75, alpha: FloatLike
        | None = 0.0001, size: IntLike, name: str = ""
    ) -> Value:
        """LRN: `x / (bias + alpha / size * s) ** beta`, where `s` is the sum of squares over `size`
        channels.

        Inputs:
            X: The input, (N, C, D1, ..., Dn).

        Attributes:
            bias (float, default 1.0): Added before the power.
            beta (float, default 0.75): The exponent.
            alpha (float, default 0.0001): The weight of the mean of squares.
            size (int, required): The number of channels to sum, centred; if even, one more after the
                centre than before it. Values: 1 or more.

        Outputs:
            Y: The input's shape.
        """

    @overload
    def LSTM(
        self, X: Operand, W: Operand, R: Operand, B: Operand | None = None, sequence_lens: Operand | None =
        None, initial_h: Operand | None = None, initial_c: Operand | None = None, P: Operand | None = None, /,
        *, clip: FloatLike | None = None, activation_beta: FloatsLike | None = None, activation_alpha:
        FloatsLike | None = None, hidden_size: IntLike | None = None, direction: StringLike | None =
        'forward', input_forget: IntLike | None = 0, activations: StringsLike | None = None, layout: IntLike |
        None = 0, output_sequence: IntLike | None = None, outputs: Literal[1] = 1, name: str = ""
    ) -> Value:
        """LSTM: Long short-term memory, step by step: `c = sigmoid(f) c + sigmoid(i) tanh(g)`, `h =
        sigmoid(o) tanh(c)`, where the gates i, o, f, g are `W x + R h + b`.

        Inputs:
            X: Shape (time, batch, input).
            W: Shape (directions, 4 hidden, input): gates i, o, f, g.
            R: Shape (directions, 4 hidden, hidden): the same gates.
            B (optional): (directions, 8 hidden): biases of W, then of R.
            sequence_lens (optional): (batch): the number of steps of each sequence.
            initial_h (optional): Shape (directions, batch, hidden).
            initial_c (optional): Shape (directions, batch, hidden).
            P (optional): (directions, 3 hidden): from c to i, o, f.

        Attributes:
            clip (float, optional): The inputs of the activation functions are limited to [-clip, clip];
                0: no limit.
            activation_beta (floats, optional): The second parameters of those activation functions that
                have two, in order.
            activation_alpha (floats, optional): The first parameters of those activation functions that
                have one, in order.
            hidden_size (int, optional): The size of h, which the shape of R states too.
            direction (string, default 'forward'): forward, reverse or bidirectional. Values: `forward`,
                `reverse`, `bidirectional`.
            input_forget (int, default 0): 1: the forget gate is one minus the input gate.
            activations (strings, optional): Of i, o, f, of g, and of c, for each direction; Sigmoid,
                Tanh, Tanh by default. Values: `Relu`, `Tanh`, `Sigmoid`, `Affine`, `LeakyRelu`,
                `ThresholdedRelu`, `ScaledTanh`, `HardSigmoid`, `Elu`, `Softsign`, `Softplus`.
            layout (int, default 0): 1: the batch is the first dimension of X, of the states and of the
                outputs. Values: `0`, `1`.
            output_sequence (int, up to version 1): 0: Y may be omitted.

        Outputs:
            Y (optional): (time, directions, batch, hidden): every h.
            Y_h (optional): (directions, batch, hidden): the last h.
            Y_c (optional): (directions, batch, hidden): the last c.
        """
    @overload
    def LSTM(
        self, X: Operand, W: Operand, R: Operand, B: Operand | None = None, sequence_lens: Operand | None =
        None, initial_h: Operand | None = None, initial_c: Operand | None = None, P: Operand | None = None, /,
        *, clip: FloatLike | None = None, activation_beta: FloatsLike | None = None, activation_alpha:
        FloatsLike | None = None, hidden_size: IntLike | None = None, direction: StringLike | None =
        'forward', input_forget: IntLike | None = 0, activations: StringsLike | None = None, layout: IntLike |
        None = 0, output_sequence: IntLike | None = None, outputs: Literal[2], name: str = ""
    ) -> tuple[Value, Value]: ...
    @overload
    def LSTM(
        self, X: Operand, W: Operand, R: Operand, B: Operand | None = None, sequence_lens: Operand | None =
        None, initial_h: Operand | None = None, initial_c: Operand | None = None, P: Operand | None = None, /,
        *, clip: FloatLike | None = None, activation_beta: FloatsLike | None = None, activation_alpha:
        FloatsLike | None = None, hidden_size: IntLike | None = None, direction: StringLike | None =
        'forward', input_forget: IntLike | None = 0, activations: StringsLike | None = None, layout: IntLike |
        None = 0, output_sequence: IntLike | None = None, outputs: Literal[3], name: str = ""
    ) -> tuple[Value, Value, Value]: ...
    @overload
    def LSTM(
        self, X: Operand, W: Operand, R: Operand, B: Operand | None = None, sequence_lens: Operand | None =
        None, initial_h: Operand | None = None, initial_c: Operand | None = None, P: Operand | None = None, /,
        *, clip: FloatLike | None = None, activation_beta: FloatsLike | None = None, activation_alpha:
        FloatsLike | None = None, hidden_size: IntLike | None = None, direction: StringLike | None =
        'forward', input_forget: IntLike | None = 0, activations: StringsLike | None = None, layout: IntLike |
        None = 0, output_sequence: IntLike | None = None, outputs: int, name: str = ""
    ) -> Any: ...

    @overload
    def LayerNormalization(
        self, X: Operand, Scale: Operand, B: Operand | None = None, /, *, stash_type: ElementLike | None = 1,
        epsilon: FloatLike | None = 1e-05, axis: IntLike | None = -1, outputs: Literal[1] = 1, name: str = ""
    ) -> Value:
        """LayerNormalization: `(X - mean) / sqrt(var + epsilon) * Scale + B`, over the dimensions from
        `axis` on.

        Inputs:
            X: A tensor of rank 1 or more.
            Scale: The scale, which broadcasts to X.
            B (optional): The bias, which broadcasts to X; 0 by default.

        Attributes:
            stash_type (int, default 1): The element type of the computation and of the statistics: 1
                float, 11 double, 16 bfloat16; each version admits two of them. Values: `1` (float),
                `16` (bfloat16).
            epsilon (float, default 1e-05): Added to the variance, so that it is not 0.
            axis (int, default -1): The first dimension to normalise over.

        Outputs:
            Y: The input's shape.
            Mean (optional): The means; the normalised dimensions are 1.
            InvStdDev (optional): `1 / sqrt(var + epsilon)`; the normalised dimensions are 1.
        """
    @overload
    def LayerNormalization(
        self, X: Operand, Scale: Operand, B: Operand | None = None, /, *, stash_type: ElementLike | None = 1,
        epsilon: FloatLike | None = 1e-05, axis: IntLike | None = -1, outputs: Literal[2], name: str = ""
    ) -> tuple[Value, Value]: ...
    @overload
    def LayerNormalization(
        self, X: Operand, Scale: Operand, B: Operand | None = None, /, *, stash_type: ElementLike | None = 1,
        epsilon: FloatLike | None = 1e-05, axis: IntLike | None = -1, outputs: Literal[3], name: str = ""
    ) -> tuple[Value, Value, Value]: ...
    @overload
    def LayerNormalization(
        self, X: Operand, Scale: Operand, B: Operand | None = None, /, *, stash_type: ElementLike | None = 1,
        epsilon: FloatLike | None = 1e-05, axis: IntLike | None = -1, outputs: int, name: str = ""
    ) -> Any: ...

    def LeakyRelu(self, X: Operand, /, *, alpha: FloatLike | None = 0.01, name: str = "") -> Value:
        """LeakyRelu: `x` where it is 0 or above, `alpha * x` below.

        Inputs:
            X: A tensor of any shape.

        Attributes:
            alpha (float, default 0.01): The slope below 0.

        Outputs:
            Y: The input's shape.
        """

    def Less(
        self, A: Operand, B: Operand, /, *, axis: IntLike | None = None, broadcast: IntLike | None = None,
        name: str = ""
    ) -> Value:
        """Less: Whether `A < B`, elementwise; false for NaN.

        Inputs:
            A: The first operand.
            B: The second operand.

        Attributes:
            axis (int, up to version 1): The axis of `A` at which the dimensions of `B` begin; by
                default they are its last.
            broadcast (int, up to version 1): 1: `B` is broadcast to the shape of `A`.

        Outputs:
            C: The shape to which both inputs broadcast.
        """

    def LessOrEqual(self, A: Operand, B: Operand, /, *, name: str = "") -> Value:
        """LessOrEqual: Whether `A <= B`, elementwise; false for NaN.

        Inputs:
            A: The first operand.
            B: The second operand.

        Outputs:
            C: The shape to which both inputs broadcast.
        """

    def LinearAttention(
        self, query: Operand, key: Operand, value: Operand, past_state: Operand | None = None, decay: Operand
        | None = None, beta: Operand | None = None, /, *, chunk_size: IntLike | None = 64, kv_num_heads:
        IntLike, q_num_heads: IntLike, scale: FloatLike | None = 0.0, update_rule: StringLike | None =
        'gated_delta', outputs: Literal[2] = 2, name: str = ""
    ) -> tuple[Value, Value]:
        """LinearAttention: The product of queries with a state S, step by step: `S = exp(g) S'`, then `S
        += k (beta (v - S k))`, then `o = scale S q`; some rules lack g or the correction.

        Inputs:
            query: (batch, steps, heads * key size).
            key: (batch, steps, kv heads * key size).
            value: (batch, steps, kv heads * value size).
            past_state (optional): (batch, kv heads, key size, value size); zeros by default.
            decay (optional): g, (batch, steps, kv heads), or one for each element of a key; for the
                gated rules.
            beta (optional): (batch, steps, kv heads), or one for all heads; for the delta rules.

        Attributes:
            chunk_size (int, default 64): A hint: the number of steps to compute together.
            kv_num_heads (int, required): The number of heads of keys and values. Values: 1 or more.
            q_num_heads (int, required): The number of heads of queries, a multiple of that of keys.
                Values: 1 or more.
            scale (float, default 0.0): The factor of the output; 0: 1 / sqrt(key size).
            update_rule (string, default 'gated_delta'): linear, gated, delta or gated_delta. Values:
                `linear`, `gated`, `delta`, `gated_delta`.

        Outputs:
            output: (batch, steps, heads * value size).
            present_state: The state after the last step.
        """

    def Log(self, input: Operand, /, *, name: str = "") -> Value:
        """Log: The natural logarithm of each element; NaN below 0.

        Inputs:
            input: A tensor of any shape.

        Outputs:
            output: The input's shape; -infinity where the input is 0.
        """

    def LogSoftmax(self, input: Operand, /, *, axis: IntLike | None = -1, name: str = "") -> Value:
        """LogSoftmax: The logarithms of Softmax along `axis`: `x - log(sum(exp(x)))`.

        Inputs:
            input: A tensor of any rank.

        Attributes:
            axis (int, default -1): The dimension along which the exponentials sum to one.

        Outputs:
            output: The input's shape; no value exceeds 0.
        """

    @overload
    def Loop(
        self, M: Operand | None = None, cond: Operand | None = None, /, *v_initial: Operand, body: GraphLike,
        outputs: Literal[1] = 1, name: str = ""
    ) -> Value:
        """Loop: Runs `body` up to M times while its condition is true; carries values, stacks other
        outputs.

        Inputs:
            M (optional): The maximum of iterations; without it only the condition ends the loop.
            cond (optional): Whether the loop starts; without it the body's conditions are ignored.
            v_initial (variadic): The initial carried values.

        Attributes:
            body (graph, required): Its inputs are the iteration number, the condition and the carried
                values; its outputs are the next condition, the next carried values and the outputs to
                stack.

        Outputs:
            v_final_and_scan_outputs (variadic): The final carried values, then the body's other outputs
                stacked over the iterations.
        """
    @overload
    def Loop(
        self, M: Operand | None = None, cond: Operand | None = None, /, *v_initial: Operand, body: GraphLike,
        outputs: Literal[2], name: str = ""
    ) -> tuple[Value, Value]: ...
    @overload
    def Loop(
        self, M: Operand | None = None, cond: Operand | None = None, /, *v_initial: Operand, body: GraphLike,
        outputs: Literal[3], name: str = ""
    ) -> tuple[Value, Value, Value]: ...
    @overload
    def Loop(
        self, M: Operand | None = None, cond: Operand | None = None, /, *v_initial: Operand, body: GraphLike,
        outputs: Literal[4], name: str = ""
    ) -> tuple[Value, Value, Value, Value]: ...
    @overload
    def Loop(
        self, M: Operand | None = None, cond: Operand | None = None, /, *v_initial: Operand, body: GraphLike,
        outputs: int, name: str = ""
    ) -> Any: ...

    def LpNormalization(
        self, input: Operand, /, *, p: IntLike | None = 2, axis: IntLike | None = -1, name: str = ""
    ) -> Value:
        """LpNormalization: Each element divided by the L1 or L2 norm along `axis`; 0 where the norm is 0.

        Inputs:
            input: A tensor of rank 1 or more.

        Attributes:
            p (int, default 2): 1: the sum of absolute values; 2: the root of the sum of squares.
                Values: `1`, `2`.
            axis (int, default -1): The axis along which the norms are 1.

        Outputs:
            output: The input's shape.
        """

    def LpPool(
        self, X: Operand, /, *, pads: IntsLike | None = None, auto_pad: StringLike | None = 'NOTSET', strides:
        IntsLike | None = None, p: IntLike | FloatLike | None = 2, kernel_shape: IntsLike, ceil_mode: IntLike
        | None = 0, dilations: IntsLike | None = None, name: str = ""
    ) -> Value:
        """LpPool: The p-norm of each window that slides over the spatial axes: `sum(|x| ** p) ** (1 / p)`.

        Inputs:
            X: The input, (N, C, D1, ..., Dn).

        Attributes:
            pads (ints, optional): Padding at the beginning of each spatial axis, then at the end of
                each; 0 by default. Values: 0 or more.
            auto_pad (string, default 'NOTSET'): SAME_UPPER, SAME_LOWER: as much padding as makes O =
                ceil(D / stride), an odd element at the end or the beginning; VALID: no padding; NOTSET:
                `pads`. Values: `NOTSET`, `SAME_UPPER`, `SAME_LOWER`, `VALID`.
            strides (ints, optional): The step between windows along each spatial axis; 1 by default.
                Values: 1 or more.
            p (int, default 2): The order of the norm, above 0. Values: above 0.
            kernel_shape (ints, required): The size of the window along each axis. Values: 1 or more.
            ceil_mode (int, default 0): 1: the last window may end beyond the padded input.
            dilations (ints, optional): The step between the elements of a window along each spatial
                axis; 1 by default. Values: 1 or more.

        Outputs:
            Y: The norms, (N, C, O1, ..., On); padding is 0.
        """

    def MatMul(self, A: Operand, B: Operand, /, *, name: str = "") -> Value:
        """MatMul: `A @ B`: stacks of matrices broadcast; a 1-D operand is a row or a column.

        Inputs:
            A: Shape (..., M, K), or (K).
            B: Shape (..., K, N), or (K).

        Outputs:
            Y: Shape (..., M, N), without M or N where an operand is 1-D.
        """

    def MatMulInteger(
        self, A: Operand, B: Operand, a_zero_point: Operand | None = None, b_zero_point: Operand | None =
        None, /, *, name: str = ""
    ) -> Value:
        """MatMulInteger: `(A - a_zero_point) @ (B - b_zero_point)` as int32, with overflow wrapping
        around.

        Inputs:
            A: Shape (..., M, K), or (K).
            B: Shape (..., K, N), or (K).
            a_zero_point (optional): The number in A that represents 0: a scalar, (M), or (..., M, 1); 0
                by default.
            b_zero_point (optional): The number in B that represents 0: a scalar, (N), or (..., 1, N); 0
                by default.

        Outputs:
            Y: Shape (..., M, N), without M or N for a 1-D operand.
        """

    def Max(self, *data_0: Operand, name: str = "") -> Value:
        """Max: The greatest of all inputs, elementwise; NaN where one of them is NaN.

        Inputs:
            data_0 (variadic): One or more tensors.

        Outputs:
            max: The shape to which all inputs broadcast.
        """

    @overload
    def MaxPool(
        self, X: Operand, /, *, pads: IntsLike | None = None, auto_pad: StringLike | None = 'NOTSET', strides:
        IntsLike | None = None, kernel_shape: IntsLike, storage_order: IntLike | None = 0, dilations: IntsLike
        | None = None, ceil_mode: IntLike | None = 0, outputs: Literal[1] = 1, name: str = ""
    ) -> Value:
        """MaxPool: The greatest element of each window that slides over the spatial axes.

        Inputs:
            X: The input, (N, C, D1, ..., Dn).

        Attributes:
            pads (ints, optional): Padding at the beginning of each spatial axis, then at the end of
                each; 0 by default. Values: 0 or more.
            auto_pad (string, default 'NOTSET'): SAME_UPPER, SAME_LOWER: as much padding as makes O =
                ceil(D / stride), an odd element at the end or the beginning; VALID: no padding; NOTSET:
                `pads`. Values: `NOTSET`, `SAME_UPPER`, `SAME_LOWER`, `VALID`.
            strides (ints, optional): The step between windows along each spatial axis; 1 by default.
                Values: 1 or more.
            kernel_shape (ints, required): The size of the window along each axis. Values: 1 or more.
            storage_order (int, default 0): 1: the last axis varies slowest in `Indices` (column-major
                order). Values: `0`, `1`.
            dilations (ints, optional): The step between the elements of a window along each spatial
                axis; 1 by default. Values: 1 or more.
            ceil_mode (int, default 0): 1: the last window may end beyond the padded input.

        Outputs:
            Y: The maxima, (N, C, O1, ..., On); padding is less than any number.
            Indices (optional): The index of each maximum, the first of equals, in the flattened input;
                -1 in padding.
        """
    @overload
    def MaxPool(
        self, X: Operand, /, *, pads: IntsLike | None = None, auto_pad: StringLike | None = 'NOTSET', strides:
        IntsLike | None = None, kernel_shape: IntsLike, storage_order: IntLike | None = 0, dilations: IntsLike
        | None = None, ceil_mode: IntLike | None = 0, outputs: Literal[2], name: str = ""
    ) -> tuple[Value, Value]: ...
    @overload
    def MaxPool(
        self, X: Operand, /, *, pads: IntsLike | None = None, auto_pad: StringLike | None = 'NOTSET', strides:
        IntsLike | None = None, kernel_shape: IntsLike, storage_order: IntLike | None = 0, dilations: IntsLike
        | None = None, ceil_mode: IntLike | None = 0, outputs: int, name: str = ""
    ) -> Any: ...

    def MaxRoiPool(
        self, X: Operand, rois: Operand, /, *, spatial_scale: FloatLike | None = 1.0, pooled_shape: IntsLike,
        name: str = ""
    ) -> Value:
        """MaxRoiPool: The maximum of each bin of a grid over each region, 0 for empty bins.

        Inputs:
            X: Feature maps, (N, C, H, W).
            rois: (R, 5): a batch index, then the corners x1, y1, x2, y2.

        Attributes:
            spatial_scale (float, default 1.0): The pixels of `X` for a unit of the corners, which are
                then rounded.
            pooled_shape (ints, required): The number of bins along height and width. Values: 1 or more.

        Outputs:
            Y: (R, C, *pooled_shape).
        """

    def MaxUnpool(
        self, X: Operand, I: Operand, output_shape: Operand | None = None, /, *, pads: IntsLike | None = None,
        strides: IntsLike | None = None, kernel_shape: IntsLike, name: str = ""
    ) -> Value:
        """MaxUnpool: Zeros, with each element of `X` at its index in `I`; a partial inverse of MaxPool.

        Inputs:
            X: The output of MaxPool, (N, C, O1, ..., On).
            I: The shape of `X`: the index of each element in the flattened tensor that was pooled.
            output_shape (optional): The output's shape, (N, C, D1, ..., Dn), if larger than the windows
                cover; zeros at the ends.

        Attributes:
            pads (ints, optional): Padding at the beginning of each spatial axis, then at the end of
                each; 0 by default. Values: 0 or more.
            strides (ints, optional): The step between windows along each spatial axis; 1 by default.
                Values: 1 or more.
            kernel_shape (ints, required): The size of the window along each axis. Values: 1 or more.

        Outputs:
            output: (N, C, D1, ..., Dn), D = stride * (O - 1) + kernel - pads.
        """

    def Mean(self, *data_0: Operand, name: str = "") -> Value:
        """Mean: The sum of all inputs, elementwise, divided by their number.

        Inputs:
            data_0 (variadic): One or more tensors.

        Outputs:
            mean: The shape to which all inputs broadcast.
        """

    def MeanVarianceNormalization(
        self, X: Operand, /, *, axes: IntsLike | None = [0, 2, 3], across_channels: IntLike | None = None,
        normalize_variance: IntLike | None = None, name: str = ""
    ) -> Value:
        """MeanVarianceNormalization: `(X - mean(X)) / (sqrt(var(X)) + 1e-9)`, over `axes`.

        Inputs:
            X: A tensor that has these axes; rank 4 with the default.

        Attributes:
            axes (ints, default [0, 2, 3]): The axes to average over; by default all but the channels.
            across_channels (int, up to version 1): 1: average over the channels too.
            normalize_variance (int, up to version 1): 0: subtract the mean only.

        Outputs:
            Y: The input's shape.
        """

    def MelWeightMatrix(
        self, num_mel_bins: Operand, dft_length: Operand, sample_rate: Operand, lower_edge_hertz: Operand,
        upper_edge_hertz: Operand, /, *, output_datatype: ElementLike | None = 1, name: str = ""
    ) -> Value:
        """MelWeightMatrix: For each band a triangle over the frequencies of a spectrum; the edges of the
        bands are at equal steps of `2595 log10(1 + f / 700)`.

        Inputs:
            num_mel_bins: The number of bands.
            dft_length: The length of the frames whose spectra are summed.
            sample_rate: Samples per second of the signal.
            lower_edge_hertz: The start of the lowest band.
            upper_edge_hertz: The end of the highest band.

        Attributes:
            output_datatype (int, default 1): The element type of the output. Values: `1` (float), `2`
                (uint8), `3` (int8), `4` (uint16), `5` (int16), `6` (int32), `7` (int64), `10`
                (float16), `11` (double), `12` (uint32), `13` (uint64), `16` (bfloat16).

        Outputs:
            output: (dft_length // 2 + 1, num_mel_bins).
        """

    def MemcpyFromHost(self, X: Operand, /, *, name: str = "") -> Value:
        """MemcpyFromHost: The input, unchanged: a copy from the memory of the host to that of a device.

        Inputs:
            X: A tensor, or a sequence of tensors.

        Outputs:
            Y: The same value.
        """

    def MemcpyToHost(self, X: Operand, /, *, name: str = "") -> Value:
        """MemcpyToHost: The input, unchanged: a copy from the memory of a device to that of the host.

        Inputs:
            X: A tensor, or a sequence of tensors.

        Outputs:
            Y: The same value.
        """

    def Min(self, *data_0: Operand, name: str = "") -> Value:
        """Min: The least of all inputs, elementwise; NaN where one of them is NaN.

        Inputs:
            data_0 (variadic): One or more tensors.

        Outputs:
            min: The shape to which all inputs broadcast.
        """

    def Mish(self, X: Operand, /, *, name: str = "") -> Value:
        """Mish: `x * tanh(softplus(x))`, with `softplus(x) = log(1 + exp(x))`.

        Inputs:
            X: A tensor of any shape.

        Outputs:
            Y: The input's shape.
        """

    def Mod(self, A: Operand, B: Operand, /, *, fmod: IntLike | None = 0, name: str = "") -> Value:
        """Mod: `A - floor(A / B) * B`, with `fmod` the quotient truncated; integers modulo 0 are 0.

        Inputs:
            A: The dividend.
            B: The divisor.

        Attributes:
            fmod (int, default 0): The remainder has the sign of the divisor (0) or of the dividend (1).
                Values: `0`, `1`.

        Outputs:
            C: The shape that both inputs broadcast to.
        """

    def Mul(
        self, A: Operand, B: Operand, /, *, axis: IntLike | None = None, broadcast: IntLike | None = None,
        name: str = ""
    ) -> Value:
        """Mul: The product of two tensors, elementwise: `A * B`.

        Inputs:
            A: One factor.
            B: The other factor.

        Attributes:
            axis (int, up to version 6): The axis of `A` at which the dimensions of `B` begin; by
                default they are its last.
            broadcast (int, up to version 6): 1: `B` is broadcast to the shape of `A`.

        Outputs:
            C: The shape to which both inputs broadcast.
        """

    def Multinomial(
        self, input: Operand, /, *, dtype: ElementLike | None = 6, seed: FloatLike | None = None, sample_size:
        IntLike | None = 1, name: str = ""
    ) -> Value:
        """Multinomial: Outcomes drawn independently with the probabilities `Softmax(input)` of each row.

        Inputs:
            input: Unnormalised logarithms of the probabilities, (batch, outcomes).

        Attributes:
            dtype (int, default 6): The element type, as a number of TensorProto.DataType; int32 by
                default. Values: `6` (int32), `7` (int64).
            seed (float, optional): The seed of the generator; without it, each run differs.
            sample_size (int, default 1): The number of outcomes per row. Values: 0 or more.

        Outputs:
            output: The numbers of the outcomes, (batch, sample_size).
        """

    def Neg(self, X: Operand, /, *, name: str = "") -> Value:
        """Neg: The negative of each element: `-x`; the least signed integer is unchanged.

        Inputs:
            X: A tensor of any shape.

        Outputs:
            Y: The input's shape.
        """

    def NegativeLogLikelihoodLoss(
        self, input: Operand, target: Operand, weight: Operand | None = None, /, *, ignore_index: IntLike |
        None = None, reduction: StringLike | None = 'mean', name: str = ""
    ) -> Value:
        """NegativeLogLikelihoodLoss: `-input[n, target[n]] * weight[target[n]]` for each label, then
        `reduction`.

        Inputs:
            input: Log-probabilities, (N, C, d1, ..., dk).
            target: The classes, (N, d1, ..., dk), each in [0, C) or ignored.
            weight (optional): A factor for each class, (C); 1 by default.

        Attributes:
            ignore_index (int, optional): A class whose losses and weights count as 0; none by default.
            reduction (string, default 'mean'): none, sum, or mean: the sum divided by the sum of the
                weights. Values: `none`, `sum`, `mean`.

        Outputs:
            loss: A scalar; the shape of `target` without reduction.
        """

    def NonMaxSuppression(
        self, boxes: Operand, scores: Operand, max_output_boxes_per_class: Operand | None = None,
        iou_threshold: Operand | None = None, score_threshold: Operand | None = None, /, *, center_point_box:
        IntLike | None = 0, name: str = ""
    ) -> Value:
        """NonMaxSuppression: The boxes of each class by descending score, without those whose overlap with
        a selected box exceeds `iou_threshold` of their union.

        Inputs:
            boxes: Boxes, [batch, boxes, 4], in the format of `center_point_box`.
            scores: Scores, [batch, classes, boxes].
            max_output_boxes_per_class (optional): One number: the maximum of selected boxes per class;
                0 by default.
            iou_threshold (optional): One number from 0 to 1; 0 by default.
            score_threshold (optional): One number: boxes with a lower score are not selected.

        Attributes:
            center_point_box (int, default 0): 0: [y1, x1, y2, x2], any two opposite corners; 1: [x, y,
                width, height], with the centre x, y. Values: `0`, `1`.

        Outputs:
            selected_indices: A row for each selected box: its batch, its class, its index.
        """

    def NonZero(self, X: Operand, /, *, name: str = "") -> Value:
        """NonZero: The indices of the elements of `X` that are not zero, one column for each, row by row.

        Inputs:
            X: A tensor of any shape; an empty string counts as zero.

        Outputs:
            Y: One row for each dimension of `X` (none for a scalar), one column for each element found.
        """

    def Not(self, X: Operand, /, *, name: str = "") -> Value:
        """Not: True where the element is false, and false where it is true.

        Inputs:
            X: A tensor of any shape.

        Outputs:
            Y: The input's shape.
        """

    def OneHot(
        self, indices: Operand, depth: Operand, values: Operand, /, *, axis: IntLike | None = -1, name: str =
        ""
    ) -> Value:
        """OneHot: For each index a vector of `depth` elements: `values[1]` at the index, `values[0]`
        elsewhere.

        Inputs:
            indices: Of any shape, truncated to integers; -1 is the last, and one out of range selects
                no element.
            depth: One number: the length of the vectors.
            values: Two elements: off, on.

        Attributes:
            axis (int, default -1): The dimension of the vectors in the output; -1 is the last.

        Outputs:
            output: The shape of `indices` with `depth` inserted at `axis`.
        """

    def Optional(
        self, input: Operand | None = None, /, *, type: TypeLike | None = None, name: str = ""
    ) -> Value:
        """Optional: An optional with the input as its element, or an empty one.

        Inputs:
            input (optional): The element; absent for an empty optional.

        Attributes:
            type (type, optional): The element type of an empty optional, in place of the input.

        Outputs:
            output: The optional.
        """

    def OptionalGetElement(self, input: Operand, /, *, name: str = "") -> Value:
        """OptionalGetElement: The element of the optional; a tensor or a sequence is returned unchanged.

        Inputs:
            input: An optional that is not empty, or a tensor or sequence.

        Outputs:
            output: The tensor or sequence.
        """

    def OptionalHasElement(self, input: Operand | None = None, /, *, name: str = "") -> Value:
        """OptionalHasElement: True if the input is present and is not an empty optional.

        Inputs:
            input (optional): An optional, tensor or sequence, or nothing.

        Outputs:
            output: A scalar.
        """

    def Or(
        self, A: Operand, B: Operand, /, *, axis: IntLike | None = None, broadcast: IntLike | None = None,
        name: str = ""
    ) -> Value:
        """Or: Whether at least one of the two elements is true.

        Inputs:
            A: The first operand.
            B: The second operand.

        Attributes:
            axis (int, up to version 1): The axis of `A` at which the dimensions of `B` begin; by
                default they are its last.
            broadcast (int, up to version 1): 1: `B` is broadcast to the shape of `A`.

        Outputs:
            C: The shape to which both inputs broadcast.
        """

    def PRelu(self, X: Operand, slope: Operand, /, *, name: str = "") -> Value:
        """PRelu: `X` where it is 0 or above, `slope * X` below.

        Inputs:
            X: A tensor of any shape.
            slope: The slopes below 0, which are broadcast to X.

        Outputs:
            Y: The shape of X.
        """

    @overload
    def Pad(
        self, data: Operand, pads: Operand, constant_value: Operand | None = None, axes: Operand | None =
        None, /, *, mode: StringLike | None = 'constant', name: str = ""
    ) -> Value:
        """Pad: `data` with `pads` elements added before and after each axis, or removed if negative.

        Inputs:
            data: A tensor of any shape.
            pads: The elements to add before each axis, then after each; a negative number removes
                elements.
            constant_value (optional): The padding of the mode constant: one element; 0, the empty
                string or False by default.
            axes (optional): The axes to pad, from the back if negative; all by default.

        Attributes:
            mode (string, default 'constant'): constant; edge: repeats the ends; reflect: mirrors at the
                ends; wrap: continues at the other end. Values: `constant`, `reflect`, `edge`, `wrap`.

        Outputs:
            output: The padded tensor.
        """
    @overload
    def Pad(
        self, data: Operand, /, *, value: FloatLike | None = 0.0, mode: StringLike | None = 'constant', pads:
        IntsLike | None = None, paddings: IntsLike | None = None, name: str = ""
    ) -> Value: ...

    def ParametricSoftplus(
        self, X: Operand, /, *, alpha: FloatLike | None = None, beta: FloatLike | None = None, name: str = ""
    ) -> Value:
        """ParametricSoftplus: `alpha * log(exp(beta * X) + 1)`, elementwise.

        Inputs:
            X: A tensor of any shape.

        Attributes:
            alpha (float, optional): The factor of the logarithm; a call must state it.
            beta (float, optional): The factor of the input; a call must state it.

        Outputs:
            Y: The input's shape.

        Removed with opset 10.
        """

    def Pow(
        self, X: Operand, Y: Operand, /, *, axis: IntLike | None = None, broadcast: IntLike | None = None,
        name: str = ""
    ) -> Value:
        """Pow: `X` raised to the power `Y`, elementwise, in the element type of `X`.

        Inputs:
            X: The base.
            Y: The exponent.

        Attributes:
            axis (int, up to version 1): The axis of `X` at which the dimensions of `Y` begin; by
                default they are its last.
            broadcast (int, up to version 1): 1: `Y` is broadcast to the shape of `X`.

        Outputs:
            Z: The shape to which both inputs broadcast.
        """

    def QLinearConv(
        self, x: Operand, x_scale: Operand, x_zero_point: Operand, w: Operand, w_scale: Operand, w_zero_point:
        Operand, y_scale: Operand, y_zero_point: Operand, B: Operand | None = None, /, *, group: IntLike |
        None = 1, pads: IntsLike | None = None, auto_pad: StringLike | None = 'NOTSET', strides: IntsLike |
        None = None, dilations: IntsLike | None = None, kernel_shape: IntsLike | None = None, name: str = ""
    ) -> Value:
        """QLinearConv: `x - x_zero_point` convolved with `w - w_zero_point`, plus `B`, times `x_scale *
        w_scale / y_scale`, rounded, plus `y_zero_point`, saturated.

        Inputs:
            x: The input, (N, C, D1, ..., Dn).
            x_scale: The scale of `x`, a scalar.
            x_zero_point: The number in `x`, and in its padding, that represents 0: a scalar.
            w: The filters, (M, C/group, k1, ..., kn).
            w_scale: The scale of `w`: a scalar or (M).
            w_zero_point: The number in `w` that represents 0: a scalar or (M).
            y_scale: The scale of `y`, a scalar.
            y_zero_point: The number in `y` that represents 0: a scalar.
            B (optional): The bias of each filter, (M), in units of `x_scale * w_scale`.

        Attributes:
            group (int, default 1): The number of groups of channels; each has its own filters. Values:
                1 or more.
            pads (ints, optional): Padding at the beginning of each spatial axis, then at the end of
                each; 0 by default. Values: 0 or more.
            auto_pad (string, default 'NOTSET'): SAME_UPPER, SAME_LOWER: as much padding as makes O =
                ceil(D / stride), an odd element at the end or the beginning; VALID: no padding; NOTSET:
                `pads`. Values: `NOTSET`, `SAME_UPPER`, `SAME_LOWER`, `VALID`.
            strides (ints, optional): The step between windows along each spatial axis; 1 by default.
                Values: 1 or more.
            dilations (ints, optional): The step between the elements of a window along each spatial
                axis; 1 by default. Values: 1 or more.
            kernel_shape (ints, optional): The spatial shape of the filters, (k1, ..., kn); by default
                that of the weights. Values: 1 or more.

        Outputs:
            y: One channel for each filter, (N, M, O1, ..., On).
        """

    def QLinearMatMul(
        self, a: Operand, a_scale: Operand, a_zero_point: Operand, b: Operand, b_scale: Operand, b_zero_point:
        Operand, y_scale: Operand, y_zero_point: Operand, /, *, name: str = ""
    ) -> Value:
        """QLinearMatMul: `(a - a_zero_point) @ (b - b_zero_point) * (a_scale * b_scale / y_scale)`,
        rounded, plus `y_zero_point`, saturated.

        Inputs:
            a: Shape (..., M, K), or (K).
            a_scale: The scale of `a`: a scalar, (M), or (..., M, 1).
            a_zero_point: The number in `a` that represents 0, in the shape of its scale.
            b: Shape (..., K, N), or (K).
            b_scale: The scale of `b`: a scalar, (N), or (..., 1, N).
            b_zero_point: The number in `b` that represents 0, in the shape of its scale.
            y_scale: The scale of `y`, a scalar.
            y_zero_point: The number in `y` that represents 0, a scalar.

        Outputs:
            y: Shape (..., M, N), without M or N for a 1-D operand.
        """

    def QuantizeLinear(
        self, x: Operand, y_scale: Operand, y_zero_point: Operand | None = None, /, *, axis: IntLike | None =
        1, saturate: IntLike | None = 1, output_dtype: ElementLike | None = 0, block_size: IntLike | None = 0,
        precision: ElementLike | None = 0, name: str = ""
    ) -> Value:
        """QuantizeLinear: `saturate(round(x / y_scale) + y_zero_point)`, ties to even, in the type of the
        zero point.

        Inputs:
            x: A tensor of any shape.
            y_scale: The scale of `y`: a scalar, a vector along `axis`, or one for each block.
            y_zero_point (optional): The number that represents 0, in the shape of `y_scale`; 0 by
                default.

        Attributes:
            axis (int, default 1): The axis along which scales differ, if they do.
            saturate (int, default 1): For 8-bit floats, 1: overflow becomes the greatest number; 0:
                infinity or NaN.
            output_dtype (int, default 0): The output's type, as a number of TensorProto.DataType; 0:
                the zero point's, or uint8. Values: `0` (as if absent), `2` (uint8), `3` (int8), `4`
                (uint16), `5` (int16), `17` (float8e4m3fn), `18` (float8e4m3fnuz), `19` (float8e5m2),
                `20` (float8e5m2fnuz), `21` (uint4), `22` (int4), `23` (float4e2m1), `25` (uint2), `26`
                (int2), `27` (float6e2m3), `28` (float6e3m2).
            block_size (int, default 0): The number of elements along `axis` that share a scale; 0: no
                blocks. Values: 0 or more.
            precision (int, default 0): The type to divide in, as a number of TensorProto.DataType; 0:
                the scale's. Values: `0` (as if absent), `1` (float), `10` (float16), `11` (double),
                `16` (bfloat16).

        Outputs:
            y: The input's shape.
        """

    def RMSNormalization(
        self, X: Operand, scale: Operand, /, *, stash_type: ElementLike | None = 1, epsilon: FloatLike | None
        = 1e-05, axis: IntLike | None = -1, name: str = ""
    ) -> Value:
        """RMSNormalization: `X / sqrt(mean(X ** 2) + epsilon) * scale`, over the dimensions from `axis`
        on.

        Inputs:
            X: A tensor of rank 1 or more.
            scale: The scale, which broadcasts to X.

        Attributes:
            stash_type (int, default 1): The type to normalise in, as a number of TensorProto.DataType,
                before the scale. Values: `1` (float), `10` (float16), `11` (double), `16` (bfloat16).
            epsilon (float, default 1e-05): Added to the mean square, so that it is not 0.
            axis (int, default -1): The first dimension to normalise over.

        Outputs:
            Y: The input's shape, in the type of `scale`.
        """

    @overload
    def RNN(
        self, X: Operand, W: Operand, R: Operand, B: Operand | None = None, sequence_lens: Operand | None =
        None, initial_h: Operand | None = None, /, *, clip: FloatLike | None = None, activation_beta:
        FloatsLike | None = None, activation_alpha: FloatsLike | None = None, hidden_size: IntLike | None =
        None, direction: StringLike | None = 'forward', activations: StringsLike | None = ['Tanh', 'Tanh'],
        layout: IntLike | None = 0, output_sequence: IntLike | None = None, outputs: Literal[1] = 1, name: str
        = ""
    ) -> Value:
        """RNN: A recurrent layer, step by step: `h = tanh(W x + R h + b)`.

        Inputs:
            X: Shape (time, batch, input).
            W: Shape (directions, hidden, input).
            R: Shape (directions, hidden, hidden).
            B (optional): (directions, 2 hidden): biases of W, then of R.
            sequence_lens (optional): (batch): the number of steps of each sequence.
            initial_h (optional): Shape (directions, batch, hidden).

        Attributes:
            clip (float, optional): The inputs of the activation functions are limited to [-clip, clip];
                0: no limit.
            activation_beta (floats, optional): The second parameters of those activation functions that
                have two, in order.
            activation_alpha (floats, optional): The first parameters of those activation functions that
                have one, in order.
            hidden_size (int, optional): The size of h, which the shape of R states too.
            direction (string, default 'forward'): forward, reverse or bidirectional. Values: `forward`,
                `reverse`, `bidirectional`.
            activations (strings, default ['Tanh', 'Tanh']): The function of each direction. Values:
                `Relu`, `Tanh`, `Sigmoid`, `Affine`, `LeakyRelu`, `ThresholdedRelu`, `ScaledTanh`,
                `HardSigmoid`, `Elu`, `Softsign`, `Softplus`.
            layout (int, default 0): 1: the batch is the first dimension of X, of the states and of the
                outputs. Values: `0`, `1`.
            output_sequence (int, up to version 1): 0: Y may be omitted.

        Outputs:
            Y (optional): (time, directions, batch, hidden): every h.
            Y_h (optional): (directions, batch, hidden): the last h.
        """
    @overload
    def RNN(
        self, X: Operand, W: Operand, R: Operand, B: Operand | None = None, sequence_lens: Operand | None =
        None, initial_h: Operand | None = None, /, *, clip: FloatLike | None = None, activation_beta:
        FloatsLike | None = None, activation_alpha: FloatsLike | None = None, hidden_size: IntLike | None =
        None, direction: StringLike | None = 'forward', activations: StringsLike | None = ['Tanh', 'Tanh'],
        layout: IntLike | None = 0, output_sequence: IntLike | None = None, outputs: Literal[2], name: str =
        ""
    ) -> tuple[Value, Value]: ...
    @overload
    def RNN(
        self, X: Operand, W: Operand, R: Operand, B: Operand | None = None, sequence_lens: Operand | None =
        None, initial_h: Operand | None = None, /, *, clip: FloatLike | None = None, activation_beta:
        FloatsLike | None = None, activation_alpha: FloatsLike | None = None, hidden_size: IntLike | None =
        None, direction: StringLike | None = 'forward', activations: StringsLike | None = ['Tanh', 'Tanh'],
        layout: IntLike | None = 0, output_sequence: IntLike | None = None, outputs: int, name: str = ""
    ) -> Any: ...

    def RandomNormal(
        self, *, shape: IntsLike, dtype: ElementLike | None = 1, seed: FloatLike | None = None, scale:
        FloatLike | None = 1.0, mean: FloatLike | None = 0.0, name: str = ""
    ) -> Value:
        """RandomNormal: Independent random numbers of a normal distribution.

        Attributes:
            shape (ints, required): The size of each dimension. Values: 0 or more.
            dtype (int, default 1): The element type, as a number of TensorProto.DataType; float by
                default. Values: `1` (float), `10` (float16), `11` (double), `16` (bfloat16).
            seed (float, optional): The seed of the generator; without it, each run differs.
            scale (float, default 1.0): The standard deviation. Values: 0 or more.
            mean (float, default 0.0): The mean.

        Outputs:
            output: The random numbers, in the shape that `shape` specifies.
        """

    def RandomNormalLike(
        self, input: Operand, /, *, dtype: ElementLike | None = None, seed: FloatLike | None = None, scale:
        FloatLike | None = 1.0, mean: FloatLike | None = 0.0, name: str = ""
    ) -> Value:
        """RandomNormalLike: Independent random numbers of a normal distribution, in the shape of a tensor.

        Inputs:
            input: A tensor, for its shape and its element type where `dtype` is absent.

        Attributes:
            dtype (int, optional): The element type, as a number of TensorProto.DataType; that of the
                input by default. Values: `1` (float), `10` (float16), `11` (double), `16` (bfloat16).
            seed (float, optional): The seed of the generator; without it, each run differs.
            scale (float, default 1.0): The standard deviation. Values: 0 or more.
            mean (float, default 0.0): The mean.

        Outputs:
            output: The random numbers, in the shape of the input.
        """

    def RandomUniform(
        self, *, shape: IntsLike, dtype: ElementLike | None = 1, seed: FloatLike | None = None, high:
        FloatLike | None = 1.0, low: FloatLike | None = 0.0, name: str = ""
    ) -> Value:
        """RandomUniform: Independent random numbers of the uniform distribution over `[low, high)`.

        Attributes:
            shape (ints, required): The size of each dimension. Values: 0 or more.
            dtype (int, default 1): The element type, as a number of TensorProto.DataType; float by
                default. Values: `1` (float), `10` (float16), `11` (double), `16` (bfloat16).
            seed (float, optional): The seed of the generator; without it, each run differs.
            high (float, default 1.0): The upper end, which is never drawn.
            low (float, default 0.0): The lower end.

        Outputs:
            output: The random numbers, in the shape that `shape` specifies.
        """

    def RandomUniformLike(
        self, input: Operand, /, *, dtype: ElementLike | None = None, seed: FloatLike | None = None, high:
        FloatLike | None = 1.0, low: FloatLike | None = 0.0, name: str = ""
    ) -> Value:
        """RandomUniformLike: Independent random numbers over `[low, high)`, in the shape of another
        tensor.

        Inputs:
            input: A tensor, for its shape and its element type where `dtype` is absent.

        Attributes:
            dtype (int, optional): The element type, as a number of TensorProto.DataType; that of the
                input by default. Values: `1` (float), `10` (float16), `11` (double), `16` (bfloat16).
            seed (float, optional): The seed of the generator; without it, each run differs.
            high (float, default 1.0): The upper end, which is never drawn.
            low (float, default 0.0): The lower end.

        Outputs:
            output: The random numbers, in the shape of the input.
        """

    def Range(
        self, start: Operand, limit: Operand, delta: Operand, /, *, stash_type: ElementLike | None = 1, name:
        str = ""
    ) -> Value:
        """Range: `start + i * delta` for i from 0 up to `ceil((limit - start) / delta)`, the last
        excluded.

        Inputs:
            start: The first number, in a 0-D tensor.
            limit: The limit, which is excluded.
            delta: The step, below 0 to count down; never 0.

        Attributes:
            stash_type (int, default 1): The type in which float16 and bfloat16 are computed, 1: float,
                11: double. Values: `1` (float), `11` (double).

        Outputs:
            output: The numbers, 1-D; empty where `delta` has the wrong sign.
        """

    def Reciprocal(self, X: Operand, /, *, name: str = "") -> Value:
        """Reciprocal: One over each element: `1 / x`.

        Inputs:
            X: A tensor of any shape.

        Outputs:
            Y: The input's shape; infinite where the input is 0.
        """

    def ReduceL1(
        self, data: Operand, axes_: Operand | None = None, /, *, keepdims: IntLike | None = 1,
        noop_with_empty_axes: IntLike | None = 0, axes: IntsLike | None = None, name: str = ""
    ) -> Value:
        """ReduceL1: The sum of absolute values over `axes`: `sum(abs(x))`.

        Inputs:
            data: A tensor of any shape.
            axes (optional): The axes to reduce, each in [-rank, rank-1].

        Attributes:
            keepdims (int, default 1): 1: the reduced axes stay, with size 1; 0: they are removed.
            noop_with_empty_axes (int, default 0): Without axes, 0: reduce all of them, 1: none.
            axes (ints, up to version 13): The axes to reduce; all of them by default.

        Outputs:
            reduced: The norms; integers wrap.
        """

    def ReduceL2(
        self, data: Operand, axes_: Operand | None = None, /, *, keepdims: IntLike | None = 1,
        noop_with_empty_axes: IntLike | None = 0, axes: IntsLike | None = None, name: str = ""
    ) -> Value:
        """ReduceL2: The root of the sum of squares over `axes`: `sqrt(sum(x * x))`.

        Inputs:
            data: A tensor of any shape.
            axes (optional): The axes to reduce, each in [-rank, rank-1].

        Attributes:
            keepdims (int, default 1): 1: the reduced axes stay, with size 1; 0: they are removed.
            noop_with_empty_axes (int, default 0): Without axes, 0: reduce all of them, 1: none.
            axes (ints, up to version 13): The axes to reduce; all of them by default.

        Outputs:
            reduced: The norms; those of integers are truncated toward zero.
        """

    def ReduceLogSum(
        self, data: Operand, axes_: Operand | None = None, /, *, keepdims: IntLike | None = 1,
        noop_with_empty_axes: IntLike | None = 0, axes: IntsLike | None = None, name: str = ""
    ) -> Value:
        """ReduceLogSum: The logarithm of the sum over `axes`: `log(sum(x))`.

        Inputs:
            data: A tensor of any shape.
            axes (optional): The axes to reduce, each in [-rank, rank-1].

        Attributes:
            keepdims (int, default 1): 1: the reduced axes stay, with size 1; 0: they are removed.
            noop_with_empty_axes (int, default 0): Without axes, 0: reduce all of them, 1: none.
            axes (ints, up to version 13): The axes to reduce; all of them by default.

        Outputs:
            reduced: The logarithms; -infinity for no elements.
        """

    def ReduceLogSumExp(
        self, data: Operand, axes_: Operand | None = None, /, *, keepdims: IntLike | None = 1,
        noop_with_empty_axes: IntLike | None = 0, axes: IntsLike | None = None, name: str = ""
    ) -> Value:
        """ReduceLogSumExp: The logarithm of the sum of exponentials over `axes`: `log(sum(exp(x)))`.

        Inputs:
            data: A tensor of any shape.
            axes (optional): The axes to reduce, each in [-rank, rank-1].

        Attributes:
            keepdims (int, default 1): 1: the reduced axes stay, with size 1; 0: they are removed.
            noop_with_empty_axes (int, default 0): Without axes, 0: reduce all of them, 1: none.
            axes (ints, up to version 13): The axes to reduce; all of them by default.

        Outputs:
            reduced: The logarithms; -infinity for no elements.
        """

    def ReduceMax(
        self, data: Operand, axes_: Operand | None = None, /, *, keepdims: IntLike | None = 1,
        noop_with_empty_axes: IntLike | None = 0, axes: IntsLike | None = None, name: str = ""
    ) -> Value:
        """ReduceMax: The greatest element over `axes`; NaN where one of them is NaN.

        Inputs:
            data: A tensor of any shape.
            axes (optional): The axes to reduce, each in [-rank, rank-1].

        Attributes:
            keepdims (int, default 1): 1: the reduced axes stay, with size 1; 0: they are removed.
            noop_with_empty_axes (int, default 0): Without axes, 0: reduce all of them, 1: none.
            axes (ints, up to version 13): The axes to reduce; all of them by default.

        Outputs:
            reduced: The maxima; the least value of the type for no elements.
        """

    def ReduceMean(
        self, data: Operand, axes_: Operand | None = None, /, *, keepdims: IntLike | None = 1,
        noop_with_empty_axes: IntLike | None = 0, axes: IntsLike | None = None, name: str = ""
    ) -> Value:
        """ReduceMean: The sum over `axes`, divided by the number of elements: `sum(x) / n`.

        Inputs:
            data: A tensor of any shape.
            axes (optional): The axes to reduce, each in [-rank, rank-1].

        Attributes:
            keepdims (int, default 1): 1: the reduced axes stay, with size 1; 0: they are removed.
            noop_with_empty_axes (int, default 0): Without axes, 0: reduce all of them, 1: none.
            axes (ints, up to version 13): The axes to reduce; all of them by default.

        Outputs:
            reduced: The means; those of integers are truncated toward zero.
        """

    def ReduceMin(
        self, data: Operand, axes_: Operand | None = None, /, *, keepdims: IntLike | None = 1,
        noop_with_empty_axes: IntLike | None = 0, axes: IntsLike | None = None, name: str = ""
    ) -> Value:
        """ReduceMin: The least element over `axes`; NaN where one of them is NaN.

        Inputs:
            data: A tensor of any shape.
            axes (optional): The axes to reduce, each in [-rank, rank-1].

        Attributes:
            keepdims (int, default 1): 1: the reduced axes stay, with size 1; 0: they are removed.
            noop_with_empty_axes (int, default 0): Without axes, 0: reduce all of them, 1: none.
            axes (ints, up to version 13): The axes to reduce; all of them by default.

        Outputs:
            reduced: The minima; the greatest value of the type for no elements.
        """

    def ReduceProd(
        self, data: Operand, axes_: Operand | None = None, /, *, keepdims: IntLike | None = 1,
        noop_with_empty_axes: IntLike | None = 0, axes: IntsLike | None = None, name: str = ""
    ) -> Value:
        """ReduceProd: The product over `axes`; no elements have the product 1.

        Inputs:
            data: A tensor of any shape.
            axes (optional): The axes to reduce, each in [-rank, rank-1].

        Attributes:
            keepdims (int, default 1): 1: the reduced axes stay, with size 1; 0: they are removed.
            noop_with_empty_axes (int, default 0): Without axes, 0: reduce all of them, 1: none.
            axes (ints, up to version 13): The axes to reduce; all of them by default.

        Outputs:
            reduced: The products; integers wrap.
        """

    def ReduceSum(
        self, data: Operand, axes_: Operand | None = None, /, *, keepdims: IntLike | None = 1,
        noop_with_empty_axes: IntLike | None = 0, axes: IntsLike | None = None, name: str = ""
    ) -> Value:
        """ReduceSum: The sum over `axes`; no elements have the sum 0.

        Inputs:
            data: A tensor of any shape.
            axes (optional): The axes to reduce, each in [-rank, rank-1].

        Attributes:
            keepdims (int, default 1): 1: the reduced axes stay, with size 1; 0: they are removed.
            noop_with_empty_axes (int, default 0): Without axes, 0: reduce all of them, 1: none.
            axes (ints, up to version 11): The axes to reduce; all of them by default.

        Outputs:
            reduced: The sums; integers wrap.
        """

    def ReduceSumSquare(
        self, data: Operand, axes_: Operand | None = None, /, *, keepdims: IntLike | None = 1,
        noop_with_empty_axes: IntLike | None = 0, axes: IntsLike | None = None, name: str = ""
    ) -> Value:
        """ReduceSumSquare: The sum of squares over `axes`: `sum(x * x)`.

        Inputs:
            data: A tensor of any shape.
            axes (optional): The axes to reduce, each in [-rank, rank-1].

        Attributes:
            keepdims (int, default 1): 1: the reduced axes stay, with size 1; 0: they are removed.
            noop_with_empty_axes (int, default 0): Without axes, 0: reduce all of them, 1: none.
            axes (ints, up to version 13): The axes to reduce; all of them by default.

        Outputs:
            reduced: The sums; integers wrap.
        """

    def RegexFullMatch(self, X: Operand, /, *, pattern: StringLike | None = None, name: str = "") -> Value:
        """RegexFullMatch: Whether a regular expression in RE2's syntax matches each whole string.

        Inputs:
            X: Strings, of any shape.

        Attributes:
            pattern (string, optional): The expression, matched in time linear in the string.

        Outputs:
            Y: The input's shape.
        """

    def Relu(self, X: Operand, /, *, name: str = "") -> Value:
        """Relu: The positive part of each element: `max(x, 0)`.

        Inputs:
            X: A tensor of any shape.

        Outputs:
            Y: The input's shape, nothing below 0; NaN stays NaN.
        """

    @overload
    def Reshape(
        self, data: Operand, shape: Operand, /, *, allowzero: IntLike | None = 0, name: str = ""
    ) -> Value:
        """Reshape: The elements of `data`, in order, under another shape.

        Inputs:
            data: A tensor of any shape.
            shape: The new shape; 0 copies the input's dimension, a single -1 is computed from the rest.

        Attributes:
            allowzero (int, default 0): 1: a 0 in `shape` is a dimension of size 0.

        Outputs:
            reshaped: The same elements, row by row.
        """
    @overload
    def Reshape(self, data: Operand, /, *, shape: IntsLike | None = None, name: str = "") -> Value: ...

    def Resize(
        self, X: Operand, roi: Operand | None = None, scales: Operand | None = None, sizes: Operand | None =
        None, /, *, mode: StringLike | None = 'nearest', extrapolation_value: FloatLike | None = 0.0,
        exclude_outside: IntLike | None = 0, nearest_mode: StringLike | None = 'round_prefer_floor',
        coordinate_transformation_mode: StringLike | None = 'half_pixel', cubic_coeff_a: FloatLike | None =
        -0.75, keep_aspect_ratio_policy: StringLike | None = 'stretch', axes: IntsLike | None = None,
        antialias: IntLike | None = 0, name: str = ""
    ) -> Value:
        """Resize: `X` resampled to `floor(scale * size)` elements, or a specified number, along each axis:
        each is the element nearest to a coordinate, or a weighted sum of those around it.

        Inputs:
            X: A tensor of any shape.
            roi (optional): The starts, then the ends, of the part to read on each axis; 0 and 1 are the
                first and last element. Only tf_crop_and_resize reads it.
            scales (optional): The new size divided by the old, for each axis in `axes`; above 0.
            sizes (optional): The new sizes, instead of `scales`.

        Attributes:
            mode (string, default 'nearest'): The interpolation between elements. Values: `nearest`,
                `linear`, `cubic`.
            extrapolation_value (float, default 0.0): The value outside the tensor for
                tf_crop_and_resize.
            exclude_outside (int, default 0): 1: elements outside the tensor have the weight 0.
            nearest_mode (string, default 'round_prefer_floor'): The rounding of nearest;
                `round_prefer_floor` and `round_prefer_ceil` differ in ties. Values:
                `round_prefer_floor`, `round_prefer_ceil`, `floor`, `ceil`.
            coordinate_transformation_mode (string, default 'half_pixel'): The coordinates of the new
                elements in the old tensor. Values: `half_pixel`, `pytorch_half_pixel`, `align_corners`,
                `asymmetric`, `tf_crop_and_resize`, `half_pixel_symmetric`.
            cubic_coeff_a (float, default -0.75): The slope of the cubic kernel at distance 1.
            keep_aspect_ratio_policy (string, default 'stretch'): stretch, or one scale for all axes, so
                that none is larger (not_larger) or smaller (not_smaller) than in `sizes`. Values:
                `stretch`, `not_larger`, `not_smaller`.
            axes (ints, optional): The axes to resize, from the back if negative; all by default.
            antialias (int, default 0): 1: linear and cubic kernels are stretched along axes that
                shrink.

        Outputs:
            Y: The resized tensor.
        """

    def ReverseSequence(
        self, input: Operand, sequence_lens: Operand, /, *, batch_axis: IntLike | None = 1, time_axis: IntLike
        | None = 0, name: str = ""
    ) -> Value:
        """ReverseSequence: `input` with the first `sequence_lens[i]` steps of each sequence i in reverse
        order.

        Inputs:
            input: Sequences: one axis for the batch and one for time, any others after them.
            sequence_lens: The length of each sequence; later steps are unchanged.

        Attributes:
            batch_axis (int, default 1): The axis of the batch: 1 or 0. Values: `0`, `1`.
            time_axis (int, default 0): The axis of time: 0 or 1. Values: `0`, `1`.

        Outputs:
            Y: The sequences, in the shape of `input`.
        """

    def RoiAlign(
        self, X: Operand, rois: Operand, batch_indices: Operand, /, *, mode: StringLike | None = 'avg',
        output_height: IntLike | None = 1, sampling_ratio: IntLike | None = 0, output_width: IntLike | None =
        1, spatial_scale: FloatLike | None = 1.0, coordinate_transformation_mode: StringLike | None =
        'half_pixel', name: str = ""
    ) -> Value:
        """RoiAlign: The mean or maximum of interpolated samples in each bin of a grid over each region.

        Inputs:
            X: Feature maps, (N, C, H, W).
            rois: (R, 4): the corners x1, y1, x2, y2.
            batch_indices: (R): the item of the batch of each region.

        Attributes:
            mode (string, default 'avg'): `avg`: the mean of the samples; `max`: the maximum of the
                neighbours times their weights. Values: `avg`, `max`.
            output_height (int, default 1): The number of bins along the height. Values: 1 or more.
            sampling_ratio (int, default 0): The samples of a bin along each axis; 0: about one for each
                pixel. Values: 0 or more.
            output_width (int, default 1): The number of bins along the width. Values: 1 or more.
            spatial_scale (float, default 1.0): The pixels of `X` for a unit of the corners.
            coordinate_transformation_mode (string, default 'half_pixel'): `half_pixel`: corners move by
                half a pixel; `output_half_pixel`: they do not, and a region has a length of 1 or more
                pixels. Values: `half_pixel`, `output_half_pixel`.

        Outputs:
            Y: (R, C, output_height, output_width).
        """

    def RotaryEmbedding(
        self, X: Operand, cos_cache: Operand, sin_cache: Operand, position_ids: Operand | None = None, /, *,
        num_heads: IntLike | None = None, rotary_embedding_dim: IntLike | None = 0, interleaved: IntLike |
        None = 0, name: str = ""
    ) -> Value:
        """RotaryEmbedding: Pairs (a, b) of elements of each head, rotated by the angle of their position:
        `(a cos - b sin, a sin + b cos)`.

        Inputs:
            X: (batch, heads, sequence, size), or (batch, sequence, heads * size).
            cos_cache: Cosines for each pair, (positions, pairs), or (batch, sequence, pairs).
            sin_cache: Sines, in the shape of the cosines.
            position_ids (optional): (batch, sequence): rows of caches of the shape (positions, pairs).

        Attributes:
            num_heads (int, optional): The number of heads of X of rank 3.
            rotary_embedding_dim (int, default 0): The number of elements of a head to rotate; 0: all.
            interleaved (int, default 0): 1: neighbours are pairs; 0: elements of the two halves are.

        Outputs:
            Y: The shape of X; other elements stay unchanged.
        """

    def Round(self, X: Operand, /, *, name: str = "") -> Value:
        """Round: The integer nearest to each element; of two equally near ones, the even one.

        Inputs:
            X: A tensor of any shape.

        Outputs:
            Y: The input's shape, of integers.
        """

    def STFT(
        self, signal: Operand, frame_step: Operand, window: Operand | None = None, frame_length: Operand |
        None = None, /, *, onesided: IntLike | None = 1, name: str = ""
    ) -> Value:
        """STFT: The spectra of the frames of a signal, times a window; frame f starts at `f * frame_step`.

        Inputs:
            signal: Real (batch, length, 1), or complex (batch, length, 2); (batch, length) is accepted
                as real.
            frame_step: The distance between the starts of frames.
            window (optional): The factors of the elements of a frame; 1 by default.
            frame_length (optional): The length of a frame; by default that of the window, else of the
                signal.

        Attributes:
            onesided (int, default 1): 1: only the first `frame_length // 2 + 1` frequencies of each
                frame.

        Outputs:
            output: (batch, frames, frequencies, 2).
        """

    def Scale(self, input: Operand, /, *, scale: FloatLike | None = 1.0, name: str = "") -> Value:
        """Scale: `scale * input`, elementwise.

        Inputs:
            input: A tensor of any shape.

        Attributes:
            scale (float, default 1.0): The factor.

        Outputs:
            output: The input's shape.

        Removed with opset 10.
        """

    def ScaledTanh(
        self, input: Operand, /, *, alpha: FloatLike | None = None, beta: FloatLike | None = None, name: str =
        ""
    ) -> Value:
        """ScaledTanh: `alpha * tanh(beta * input)`, elementwise.

        Inputs:
            input: A tensor of any shape.

        Attributes:
            alpha (float, optional): The factor of the result; a call must state it.
            beta (float, optional): The factor of the input; a call must state it.

        Outputs:
            output: The input's shape.

        Removed with opset 10.
        """

    @overload
    def Scan(
        self, *initial_state_and_scan_inputs: Operand, num_scan_inputs: IntLike, body: GraphLike,
        scan_input_axes: IntsLike | None = None, scan_output_axes: IntsLike | None = None,
        scan_output_directions: IntsLike | None = None, scan_input_directions: IntsLike | None = None,
        directions: IntsLike | None = None, outputs: Literal[1] = 1, name: str = ""
    ) -> Value:
        """Scan: Runs `body` on one slice of its inputs after another; carries states, and stacks other
        outputs.

        Inputs:
            initial_state_and_scan_inputs (variadic): The initial states, then the `num_scan_inputs`
                tensors to iterate over, of one length.

        Attributes:
            num_scan_inputs (int, required): The number of scan inputs. Values: 1 or more.
            body (graph, required): Its inputs are the states and a slice of each scan input; its
                outputs are the next states and the outputs to stack.
            scan_input_axes (ints, optional): For each scan input, the axis to iterate over; 0 when
                absent.
            scan_output_axes (ints, optional): For each stacked output, its new axis; 0 when absent.
            scan_output_directions (ints, optional): For each, 1 to stack in reverse. Values: `0`, `1`.
            scan_input_directions (ints, optional): For each scan input, 1 to iterate from its end.
                Values: `0`, `1`.
            directions (ints, up to version 8): For each scan input, 1 to iterate from its end.

        Outputs:
            final_state_and_scan_outputs (variadic): The final states, then the body's other outputs
                stacked.
        """
    @overload
    def Scan(
        self, *initial_state_and_scan_inputs: Operand, num_scan_inputs: IntLike, body: GraphLike,
        scan_input_axes: IntsLike | None = None, scan_output_axes: IntsLike | None = None,
        scan_output_directions: IntsLike | None = None, scan_input_directions: IntsLike | None = None,
        directions: IntsLike | None = None, outputs: Literal[2], name: str = ""
    ) -> tuple[Value, Value]: ...
    @overload
    def Scan(
        self, *initial_state_and_scan_inputs: Operand, num_scan_inputs: IntLike, body: GraphLike,
        scan_input_axes: IntsLike | None = None, scan_output_axes: IntsLike | None = None,
        scan_output_directions: IntsLike | None = None, scan_input_directions: IntsLike | None = None,
        directions: IntsLike | None = None, outputs: Literal[3], name: str = ""
    ) -> tuple[Value, Value, Value]: ...
    @overload
    def Scan(
        self, *initial_state_and_scan_inputs: Operand, num_scan_inputs: IntLike, body: GraphLike,
        scan_input_axes: IntsLike | None = None, scan_output_axes: IntsLike | None = None,
        scan_output_directions: IntsLike | None = None, scan_input_directions: IntsLike | None = None,
        directions: IntsLike | None = None, outputs: Literal[4], name: str = ""
    ) -> tuple[Value, Value, Value, Value]: ...
    @overload
    def Scan(
        self, *initial_state_and_scan_inputs: Operand, num_scan_inputs: IntLike, body: GraphLike,
        scan_input_axes: IntsLike | None = None, scan_output_axes: IntsLike | None = None,
        scan_output_directions: IntsLike | None = None, scan_input_directions: IntsLike | None = None,
        directions: IntsLike | None = None, outputs: int, name: str = ""
    ) -> Any: ...

    def Scatter(
        self, data: Operand, indices: Operand, updates: Operand, /, *, axis: IntLike | None = 0, name: str =
        ""
    ) -> Value:
        """Scatter: `data` with one update for each index: that of i, j at `[i, indices[i, j]]` if `axis`
        is 1.

        Inputs:
            data: A tensor of rank 1 or more.
            indices: Of the rank of `data`; -1 is the last along `axis`.
            updates: One element for each index.

        Attributes:
            axis (int, default 0): The dimension to index, counted from the back if negative.

        Outputs:
            output: A copy of `data` with the updates.

        Removed with opset 11.
        """

    def ScatterElements(
        self, data: Operand, indices: Operand, updates: Operand, /, *, axis: IntLike | None = 0, reduction:
        StringLike | None = 'none', name: str = ""
    ) -> Value:
        """ScatterElements: `data` with one update for each index: that of i, j at `[i, indices[i, j]]` if
        `axis` is 1.

        Inputs:
            data: A tensor of rank 1 or more.
            indices: Of the rank of `data`; -1 is the last along `axis`.
            updates: One element for each index. Of several for one index the last applies, or all are
                reduced.

        Attributes:
            axis (int, default 0): The dimension to index, counted from the back if negative.
            reduction (string, default 'none'): none replaces the old value; add, mul, max or min
                combines each update with it. Values: `none`, `add`, `mul`, `max`, `min`.

        Outputs:
            output: A copy of `data` with the updates.
        """

    def ScatterND(
        self, data: Operand, indices: Operand, updates: Operand, /, *, reduction: StringLike | None = 'none',
        name: str = ""
    ) -> Value:
        """ScatterND: `data` with an update for each tuple, a last row of `indices`: `updates[i]` at
        `indices[i]`.

        Inputs:
            data: A tensor of rank 1 or more.
            indices: Tuples along the last dimension, each of indices into the first axes of `data`; -1
                is the last.
            updates: The parts of `data` at the tuples. Of several for one index the last applies, or
                all are reduced.

        Attributes:
            reduction (string, default 'none'): none replaces the old value; add, mul, max or min
                combines each update with it. Values: `none`, `add`, `mul`, `max`, `min`.

        Outputs:
            output: A copy of `data` with the updates.
        """

    def Selu(
        self, X: Operand, /, *, gamma: FloatLike | None = 1.050701, alpha: FloatLike | None = 1.673263, name:
        str = ""
    ) -> Value:
        """Selu: `gamma * x` where `x` is above 0, `gamma * alpha * (exp(x) - 1)` elsewhere.

        Inputs:
            X: A tensor of any shape.

        Attributes:
            gamma (float, default 1.050701): The factor of all results.
            alpha (float, default 1.673263): A further factor where `x` is not above 0.

        Outputs:
            Y: The input's shape, nothing below `-gamma * alpha`.
        """

    def SequenceAt(self, input_sequence: Value, position: Operand, /, *, name: str = "") -> Value:
        """SequenceAt: The item of a sequence at `position`.

        Inputs:
            input_sequence: A sequence of n tensors.
            position: A scalar in [-n, n-1], counted from the back if negative.

        Outputs:
            tensor: The item there.
        """

    def SequenceConstruct(self, *inputs: Operand, name: str = "") -> Value:
        """SequenceConstruct: The sequence of the inputs, in their order.

        Inputs:
            inputs (variadic): Tensors of one element type; shapes may differ.

        Outputs:
            output_sequence: As many items as there are inputs.
        """

    def SequenceEmpty(self, *, dtype: ElementLike | None = None, name: str = "") -> Value:
        """SequenceEmpty: A sequence of no items, of tensors of the element type `dtype`.

        Attributes:
            dtype (int, optional): The number of an element type; float when absent. Values: `1`
                (float), `2` (uint8), `3` (int8), `4` (uint16), `5` (int16), `6` (int32), `7` (int64),
                `8` (string), `9` (bool), `10` (float16), `11` (double), `12` (uint32), `13` (uint64),
                `14` (complex64), `15` (complex128).

        Outputs:
            output: A sequence without items; items of any shape may be inserted.
        """

    def SequenceErase(
        self, input_sequence: Value, position: Operand | None = None, /, *, name: str = ""
    ) -> Value:
        """SequenceErase: The sequence without the item at `position`, or without its last one.

        Inputs:
            input_sequence: A sequence of n tensors, at least one.
            position (optional): A scalar in [-n, n-1], counted from the back if negative.

        Outputs:
            output_sequence: The n - 1 others, in their order.
        """

    def SequenceInsert(
        self, input_sequence: Value, tensor: Operand, position: Operand | None = None, /, *, name: str = ""
    ) -> Value:
        """SequenceInsert: The sequence with `tensor` before the item at `position`, or at its end.

        Inputs:
            input_sequence: A sequence of n tensors.
            tensor: The tensor to insert, of the element type of the others.
            position (optional): A scalar in [-n, n], counted from the back if negative.

        Outputs:
            output_sequence: n + 1 items.
        """

    def SequenceLength(self, input_sequence: Value, /, *, name: str = "") -> Value:
        """SequenceLength: The number of items of a sequence.

        Inputs:
            input_sequence: Any sequence.

        Outputs:
            length: A scalar.
        """

    @overload
    def SequenceMap(
        self, input_sequence: Value, /, *additional_inputs: Operand, body: GraphLike, outputs: Literal[1] = 1,
        name: str = ""
    ) -> Value:
        """SequenceMap: For each output of `body` the sequence of its results for the items, in order.

        Inputs:
            input_sequence: A sequence of n tensors.
            additional_inputs (variadic): Further sequences of n tensors, of which items are passed, and
                tensors, passed each time.

        Attributes:
            body (graph, required): Takes an item or tensor of each input; returns tensors.

        Outputs:
            out_sequence (variadic): n items each.
        """
    @overload
    def SequenceMap(
        self, input_sequence: Value, /, *additional_inputs: Operand, body: GraphLike, outputs: Literal[2],
        name: str = ""
    ) -> tuple[Value, Value]: ...
    @overload
    def SequenceMap(
        self, input_sequence: Value, /, *additional_inputs: Operand, body: GraphLike, outputs: Literal[3],
        name: str = ""
    ) -> tuple[Value, Value, Value]: ...
    @overload
    def SequenceMap(
        self, input_sequence: Value, /, *additional_inputs: Operand, body: GraphLike, outputs: Literal[4],
        name: str = ""
    ) -> tuple[Value, Value, Value, Value]: ...
    @overload
    def SequenceMap(
        self, input_sequence: Value, /, *additional_inputs: Operand, body: GraphLike, outputs: int, name: str
        = ""
    ) -> Any: ...

    def Shape(
        self, data: Operand, /, *, end: IntLike | None = None, start: IntLike | None = 0, name: str = ""
    ) -> Value:
        """Shape: The dimensions of `data` from `start` up to `end`: numpy's `data.shape[start:end]`.

        Inputs:
            data: A tensor of any rank.

        Attributes:
            end (int, optional): The exclusive end; counts from the back if negative, clamped.
            start (int, default 0): The first axis; counts from the back if negative, clamped.

        Outputs:
            shape: One element for each selected dimension.
        """

    def Shrink(
        self, input: Operand, /, *, bias: FloatLike | None = 0.0, lambd: FloatLike | None = 0.5, name: str =
        ""
    ) -> Value:
        """Shrink: `x + bias` where `x < -lambd`, `x - bias` where `x > lambd`, 0 in between.

        Inputs:
            input: A tensor of any shape.

        Attributes:
            bias (float, default 0.0): The distance by which elements move.
            lambd (float, default 0.5): Elements at most this far from 0 become 0.

        Outputs:
            output: The input's shape; integers are truncated.
        """

    def Sigmoid(self, X: Operand, /, *, name: str = "") -> Value:
        """Sigmoid: The logistic function of each element: `1 / (1 + exp(-x))`.

        Inputs:
            X: A tensor of any shape.

        Outputs:
            Y: The input's shape; every value between 0 and 1.
        """

    def Sign(self, input: Operand, /, *, name: str = "") -> Value:
        """Sign: 1 where an element is above 0, -1 where it is below, 0 where it is 0; NaN stays NaN.

        Inputs:
            input: A tensor of any shape.

        Outputs:
            output: The input's shape, of -1, 0 and 1.
        """

    @overload
    def SimplifiedLayerNormalization(
        self, X: Operand, scale: Operand, /, *, stash_type: ElementLike | None = 1, epsilon: FloatLike | None
        = 1e-05, axis: IntLike | None = -1, outputs: Literal[1] = 1, name: str = ""
    ) -> Value:
        """SimplifiedLayerNormalization: `X / sqrt(mean(X ** 2) + epsilon) * scale`, over the dimensions
        from `axis` on.

        Inputs:
            X: A tensor of rank 1 or more.
            scale: The scale, which broadcasts to X.

        Attributes:
            stash_type (int, default 1): The element type of the computation and of the second output: 1
                float, 11 double. Values: `1` (float), `11` (double).
            epsilon (float, default 1e-05): Added to the mean square, so that it is not 0.
            axis (int, default -1): The first dimension to normalise over.

        Outputs:
            Y: The input's shape, in the type of `scale`.
            inv_std_var (optional): `1 / sqrt(mean(X ** 2) + epsilon)`; the normalised dimensions are 1.
        """
    @overload
    def SimplifiedLayerNormalization(
        self, X: Operand, scale: Operand, /, *, stash_type: ElementLike | None = 1, epsilon: FloatLike | None
        = 1e-05, axis: IntLike | None = -1, outputs: Literal[2], name: str = ""
    ) -> tuple[Value, Value]: ...
    @overload
    def SimplifiedLayerNormalization(
        self, X: Operand, scale: Operand, /, *, stash_type: ElementLike | None = 1, epsilon: FloatLike | None
        = 1e-05, axis: IntLike | None = -1, outputs: int, name: str = ""
    ) -> Any: ...

    def Sin(self, input: Operand, /, *, name: str = "") -> Value:
        """Sin: The sine of each element, an angle in radians.

        Inputs:
            input: Angles, in a tensor of any shape.

        Outputs:
            output: The input's shape; every value between -1 and 1.
        """

    def Sinh(self, input: Operand, /, *, name: str = "") -> Value:
        """Sinh: The hyperbolic sine of each element: `(exp(x) - exp(-x)) / 2`.

        Inputs:
            input: A tensor of any shape.

        Outputs:
            output: The input's shape.
        """

    def Size(self, data: Operand, /, *, name: str = "") -> Value:
        """Size: The number of elements of `data`: the product of its dimensions.

        Inputs:
            data: A tensor of any shape.

        Outputs:
            size: One number, as a scalar.
        """

    @overload
    def Slice(
        self, data: Operand, starts: Operand, ends: Operand, axes: Operand | None = None, steps: Operand |
        None = None, /, *, name: str = ""
    ) -> Value:
        """Slice: The part of `data` from `starts` up to `ends` in `steps`, along each of `axes`.

        Inputs:
            data: A tensor of any shape.
            starts: The first index on each axis; from the back if negative, clamped.
            ends: The exclusive end on each axis; from the back if negative, clamped.
            axes (optional): The axes to slice; the first ones when absent.
            steps (optional): The distance between indices, never 0; 1 when absent.

        Outputs:
            output: The part, of the rank of `data`.
        """
    @overload
    def Slice(
        self, data: Operand, /, *, ends: IntsLike, starts: IntsLike, axes: IntsLike | None = None, name: str =
        ""
    ) -> Value: ...

    def Softmax(self, input: Operand, /, *, axis: IntLike | None = -1, name: str = "") -> Value:
        """Softmax: Exponentials along `axis`, normalised to the sum 1: `exp(x) / sum(exp(x))`.

        Inputs:
            input: A tensor of any rank.

        Attributes:
            axis (int, default -1): The dimension along which the outputs sum to one.

        Outputs:
            output: The input's shape; every value between 0 and 1.
        """

    @overload
    def SoftmaxCrossEntropyLoss(
        self, scores: Operand, labels: Operand, weights: Operand | None = None, /, *, ignore_index: IntLike |
        None = None, reduction: StringLike | None = 'mean', outputs: Literal[1] = 1, name: str = ""
    ) -> Value:
        """SoftmaxCrossEntropyLoss: NegativeLogLikelihoodLoss of `LogSoftmax(scores)` over the classes,
        which is the second output.

        Inputs:
            scores: Any numbers, (N, C, d1, ..., dk).
            labels: The classes, (N, d1, ..., dk), each in [0, C) or ignored.
            weights (optional): A factor for each class, (C); 1 by default.

        Attributes:
            ignore_index (int, optional): A class whose losses and weights count as 0; none by default.
            reduction (string, default 'mean'): none, sum, or mean: the sum divided by the sum of the
                weights. Values: `none`, `sum`, `mean`.

        Outputs:
            output: A scalar; the shape of `labels` without reduction.
            log_prob (optional): LogSoftmax of `scores` over C.
        """
    @overload
    def SoftmaxCrossEntropyLoss(
        self, scores: Operand, labels: Operand, weights: Operand | None = None, /, *, ignore_index: IntLike |
        None = None, reduction: StringLike | None = 'mean', outputs: Literal[2], name: str = ""
    ) -> tuple[Value, Value]: ...
    @overload
    def SoftmaxCrossEntropyLoss(
        self, scores: Operand, labels: Operand, weights: Operand | None = None, /, *, ignore_index: IntLike |
        None = None, reduction: StringLike | None = 'mean', outputs: int, name: str = ""
    ) -> Any: ...

    def Softplus(self, X: Operand, /, *, name: str = "") -> Value:
        """Softplus: `log(1 + exp(x))`, elementwise.

        Inputs:
            X: A tensor of any shape.

        Outputs:
            Y: The input's shape, nothing below 0.
        """

    def Softsign(self, input: Operand, /, *, name: str = "") -> Value:
        """Softsign: `x / (1 + |x|)`, elementwise.

        Inputs:
            input: A tensor of any shape.

        Outputs:
            output: The input's shape; every value between -1 and 1.
        """

    def SpaceToDepth(
        self, input: Operand, /, *, blocksize: IntLike, mode: StringLike | None = 'DCR', name: str = ""
    ) -> Value:
        """SpaceToDepth: Each block of `blocksize` by `blocksize` pixels of `input` becomes one pixel.

        Inputs:
            input: Images of the shape [N, C, H, W].

        Attributes:
            blocksize (int, required): The height and the width of a block. Values: 1 or more.
            mode (string, default 'DCR'): DCR: the position in the block is the outer part of the depth;
                CRD: the inner part. Values: `DCR`, `CRD`.

        Outputs:
            output: Images of the shape [N, C * blocksize**2, H / blocksize, W / blocksize].
        """

    @overload
    def Split(
        self, input: Operand, split_: Operand | None = None, /, *, axis: IntLike | None = 0, num_outputs:
        IntLike | None = None, split: IntsLike | None = None, outputs: Literal[1] = 1, name: str = ""
    ) -> Value:
        """Split: The parts of `input` along `axis`, of the sizes in `split` or of equal ones.

        Inputs:
            input: The tensor to divide.
            split (optional): The size of each part along `axis`; their sum is the dimension.

        Attributes:
            axis (int, default 0): The dimension to divide, counted from the back if negative.
            num_outputs (int, optional): The number of parts, in place of `split`.
            split (ints, up to version 11): The size of each part along `axis`; their sum is the
                dimension.

        Outputs:
            outputs (variadic): The parts, in order.
        """
    @overload
    def Split(
        self, input: Operand, split_: Operand | None = None, /, *, axis: IntLike | None = 0, num_outputs:
        IntLike | None = None, split: IntsLike | None = None, outputs: Literal[2], name: str = ""
    ) -> tuple[Value, Value]: ...
    @overload
    def Split(
        self, input: Operand, split_: Operand | None = None, /, *, axis: IntLike | None = 0, num_outputs:
        IntLike | None = None, split: IntsLike | None = None, outputs: Literal[3], name: str = ""
    ) -> tuple[Value, Value, Value]: ...
    @overload
    def Split(
        self, input: Operand, split_: Operand | None = None, /, *, axis: IntLike | None = 0, num_outputs:
        IntLike | None = None, split: IntsLike | None = None, outputs: Literal[4], name: str = ""
    ) -> tuple[Value, Value, Value, Value]: ...
    @overload
    def Split(
        self, input: Operand, split_: Operand | None = None, /, *, axis: IntLike | None = 0, num_outputs:
        IntLike | None = None, split: IntsLike | None = None, outputs: int, name: str = ""
    ) -> Any: ...

    def SplitToSequence(
        self, input: Operand, split: Operand | None = None, /, *, keepdims: IntLike | None = 1, axis: IntLike
        | None = 0, name: str = ""
    ) -> Value:
        """SplitToSequence: The parts of `input` along `axis`: of the sizes in `split`, all of one size, or
        of size 1.

        Inputs:
            input: The tensor to divide.
            split (optional): The sizes of the parts; or the size of all but a smaller last one, a
                scalar. 1 when absent.

        Attributes:
            keepdims (int, default 1): 0 drops `axis` from the parts where `split` is absent.
            axis (int, default 0): The dimension to divide, counted from the back if negative.

        Outputs:
            output_sequence: The parts, in order.
        """

    def Sqrt(self, X: Operand, /, *, name: str = "") -> Value:
        """Sqrt: The square root of each element; NaN below 0.

        Inputs:
            X: A tensor of any shape.

        Outputs:
            Y: The input's shape, nothing below 0.
        """

    def Squeeze(
        self, data: Operand, axes_: Operand | None = None, /, *, axes: IntsLike | None = None, name: str = ""
    ) -> Value:
        """Squeeze: `data` without the dimensions in `axes`, or without all of size 1.

        Inputs:
            data: A tensor of any shape.
            axes (optional): The dimensions to remove, each of size 1, from the back if negative; all of
                size 1 when absent.

        Attributes:
            axes (ints, up to version 11): The dimensions to remove; all of size 1 when absent.

        Outputs:
            squeezed: The same elements in fewer dimensions.
        """

    def StringConcat(self, X: Operand, Y: Operand, /, *, name: str = "") -> Value:
        """StringConcat: Each string of `X` followed by that of `Y`, broadcast as in numpy.

        Inputs:
            X: The first parts.
            Y: The second parts.

        Outputs:
            Z: The shape to which both inputs broadcast.
        """

    def StringNormalizer(
        self, X: Operand, /, *, stopwords: StringsLike | None = None, locale: StringLike | None = None,
        is_case_sensitive: IntLike | None = 0, case_change_action: StringLike | None = 'NONE', name: str = ""
    ) -> Value:
        """StringNormalizer: The strings except stop words, in lower or upper case or unchanged.

        Inputs:
            X: Shape [C] or [1, C].

        Attributes:
            stopwords (strings, optional): The strings to remove.
            locale (string, optional): The language of case changes, as in `tr_TR`.
            is_case_sensitive (int, default 0): Whether the case of stop words matters.
            case_change_action (string, default 'NONE'): LOWER, UPPER or NONE. Values: `LOWER`, `UPPER`,
                `NONE`.

        Outputs:
            Y: Shape [K] or [1, K]; one empty string if all are removed.
        """

    def StringSplit(
        self, X: Operand, /, *, maxsplit: IntLike | None = None, delimiter: StringLike | None = None, outputs:
        Literal[2] = 2, name: str = ""
    ) -> tuple[Value, Value]:
        """StringSplit: The substrings between delimiters, along a new last dimension, and their number.

        Inputs:
            X: Strings, of any shape.

        Attributes:
            maxsplit (int, optional): The maximum of splits per string, from the left; no limit if
                absent.
            delimiter (string, optional): The delimiter; if absent or empty, any run of white space.

        Outputs:
            Y: The input's shape and one dimension more; short rows end in "".
            Z: The input's shape: the number of substrings of each.
        """

    def Sub(
        self, A: Operand, B: Operand, /, *, axis: IntLike | None = None, broadcast: IntLike | None = None,
        name: str = ""
    ) -> Value:
        """Sub: The difference of two tensors, elementwise: `A - B`.

        Inputs:
            A: The minuend.
            B: The subtrahend.

        Attributes:
            axis (int, up to version 6): The axis of `A` at which the dimensions of `B` begin; by
                default they are its last.
            broadcast (int, up to version 6): 1: `B` is broadcast to the shape of `A`.

        Outputs:
            C: The shape to which both inputs broadcast.
        """

    def Sum(self, *data_0: Operand, name: str = "") -> Value:
        """Sum: The sum of all inputs, elementwise.

        Inputs:
            data_0 (variadic): One or more tensors.

        Outputs:
            sum: The shape to which all inputs broadcast.
        """

    def SwiGLU(self, A: Operand, B: Operand, /, *, alpha: FloatLike | None = 1.0, name: str = "") -> Value:
        """SwiGLU: `A * sigmoid(alpha * A) * B`, for two tensors of one shape.

        Inputs:
            A: The gate.
            B: The gated values, of the same shape.

        Attributes:
            alpha (float, default 1.0): The steepness of the logistic function.

        Outputs:
            Y: The shape of the inputs.
        """

    def Swish(self, X: Operand, /, *, alpha: FloatLike | None = 1.0, name: str = "") -> Value:
        """Swish: `x * sigmoid(alpha * x)`, elementwise; with `alpha` 1 it is SiLU.

        Inputs:
            X: A tensor of any shape.

        Attributes:
            alpha (float, default 1.0): The steepness of the logistic function.

        Outputs:
            Y: The input's shape.
        """

    def Tan(self, input: Operand, /, *, name: str = "") -> Value:
        """Tan: The tangent of each element, an angle in radians.

        Inputs:
            input: Angles, in a tensor of any shape.

        Outputs:
            output: The input's shape.
        """

    def Tanh(self, input: Operand, /, *, name: str = "") -> Value:
        """Tanh: The hyperbolic tangent of each element.

        Inputs:
            input: A tensor of any shape.

        Outputs:
            output: The input's shape; every value between -1 and 1.
        """

    def TensorScatter(
        self, past_cache: Operand, update: Operand, write_indices: Operand | None = None, /, *, mode:
        StringLike | None = 'linear', axis: IntLike | None = -2, name: str = ""
    ) -> Value:
        """TensorScatter: `past_cache` with `update` written along `axis`, in each sequence i from
        `write_indices[i]` on.

        Inputs:
            past_cache: The cache: the batch first, and its steps along `axis`.
            update: The new steps; the shape of the cache except along `axis`.
            write_indices (optional): For each item of the batch the index of its first new step; 0 by
                default.

        Attributes:
            mode (string, default 'linear'): linear: all steps must fit into the cache; circular: they
                continue at the front. Values: `linear`, `circular`.
            axis (int, default -2): The axis of the steps, not the first.

        Outputs:
            present_cache: The cache with the new steps in it.
        """

    def TfIdfVectorizer(
        self, X: Operand, /, *, mode: StringLike, ngram_indexes: IntsLike, weights: FloatsLike | None = None,
        ngram_counts: IntsLike, pool_int64s: IntsLike | None = None, pool_strings: StringsLike | None = None,
        max_skip_count: IntLike, min_gram_length: IntLike, max_gram_length: IntLike, name: str = ""
    ) -> Value:
        """TfIdfVectorizer: The number of occurrences of each n-gram of a pool in each row, with adjacent
        or evenly spaced items, weighted by `mode`.

        Inputs:
            X: Items, shape [C] or [N, C].

        Attributes:
            mode (string, required): TF: counts; IDF: weights of the n-grams that occur; TFIDF: counts
                times weights. Values: `TF`, `IDF`, `TFIDF`.
            ngram_indexes (ints, required): The column of each n-gram. Values: 0 or more.
            weights (floats, optional): The weight of each n-gram of the pool; 1 if absent.
            ngram_counts (ints, required): The starts of the 1-grams, 2-grams, ... in it.
            pool_int64s (ints, optional): The n-grams' items, 1-grams first, if they are integers.
            pool_strings (strings, optional): The n-grams' items, if they are strings.
            max_skip_count (int, required): The maximum of items skipped between neighbours of an
                n-gram. Values: 0 or more.
            min_gram_length (int, required): The minimum of n. Values: 1 or more.
            max_gram_length (int, required): The maximum of n.

        Outputs:
            Y: Shape [K] or [N, K], K the greatest column + 1.
        """

    def ThresholdedRelu(self, X: Operand, /, *, alpha: FloatLike | None = 1.0, name: str = "") -> Value:
        """ThresholdedRelu: `x` where it is above `alpha`, 0 elsewhere and for NaN.

        Inputs:
            X: A tensor of any shape.

        Attributes:
            alpha (float, default 1.0): The threshold.

        Outputs:
            Y: The input's shape.
        """

    @overload
    def Tile(self, input: Operand, repeats: Operand, /, *, name: str = "") -> Value:
        """Tile: `repeats[i]` copies of `input` along each axis i: numpy's `tile`.

        Inputs:
            input: A tensor of any shape.
            repeats: The number of copies along each axis.

        Outputs:
            output: Each dimension `repeats[i]` times that of `input`.
        """
    @overload
    def Tile(self, input: Operand, tiles: Operand, axis: Operand, /, *, name: str = "") -> Value: ...

    @overload
    def TopK(
        self, X: Operand, K: Operand, /, *, axis: IntLike | None = -1, sorted: IntLike | None = 1, largest:
        IntLike | None = 1, outputs: Literal[2] = 2, name: str = ""
    ) -> tuple[Value, Value]:
        """TopK: The `K` largest (or smallest) elements along `axis` in order, equal ones by index, and
        their indices; NaN counts as larger than any number.

        Inputs:
            X: A tensor of rank 1 or more.
            K: One number: the number of elements to find.

        Attributes:
            axis (int, default -1): The dimension to search, counted from the back if negative.
            sorted (int, default 1): 0: any order (they are sorted all the same).
            largest (int, default 1): 1 finds the largest elements, 0 the smallest.

        Outputs:
            Values: The elements found, `K` along `axis`.
            Indices: Their indices along `axis`, in the same shape.
        """
    @overload
    def TopK(
        self, X: Operand, /, *, axis: IntLike | None = -1, k: IntLike, outputs: Literal[2] = 2, name: str = ""
    ) -> tuple[Value, Value]: ...

    def Transpose(self, data: Operand, /, *, perm: IntsLike | None = None, name: str = "") -> Value:
        """Transpose: `data` with its dimensions in the order of `perm`, or reversed.

        Inputs:
            data: A tensor of any shape.

        Attributes:
            perm (ints, optional): Every axis of the input, once; reversed when absent.

        Outputs:
            transposed: Dimension `perm[i]` of the input in place i.
        """

    def Trilu(
        self, input: Operand, k: Operand | None = None, /, *, upper: IntLike | None = 1, name: str = ""
    ) -> Value:
        """Trilu: Each matrix of `input` with zeros below (or, with `upper` 0, above) its diagonal `k`.

        Inputs:
            input: Matrices along the last two dimensions.
            k (optional): The diagonal that bounds the triangle and belongs to it: 0 the main one, above
                it if positive.

        Attributes:
            upper (int, default 1): 1: keep what is on and above the diagonal; 0: on and below.

        Outputs:
            output: The triangles, zeros (empty strings, False) outside.
        """

    @overload
    def Unique(
        self, X: Operand, /, *, axis: IntLike | None = None, sorted: IntLike | None = 1, outputs: Literal[1] =
        1, name: str = ""
    ) -> Value:
        """Unique: The unique elements of `X`, or parts along `axis`, with their first indices, inverse
        indices and counts; NaN equals NaN and is last.

        Inputs:
            X: A tensor of any shape.

        Attributes:
            axis (int, optional): Compare the parts along this axis; without it, the elements of `X`.
            sorted (int, default 1): 1: ascending; 0: by first index. Values: `0`, `1`.

        Outputs:
            Y: The unique elements as a vector, or the unique parts.
            indices (optional): The first index in `X` of each element, or part, of `Y`.
            inverse_indices (optional): The index in `Y` of each element, or part, of `X`.
            counts (optional): The number of occurrences in `X` of each element, or part, of `Y`.
        """
    @overload
    def Unique(
        self, X: Operand, /, *, axis: IntLike | None = None, sorted: IntLike | None = 1, outputs: Literal[2],
        name: str = ""
    ) -> tuple[Value, Value]: ...
    @overload
    def Unique(
        self, X: Operand, /, *, axis: IntLike | None = None, sorted: IntLike | None = 1, outputs: Literal[3],
        name: str = ""
    ) -> tuple[Value, Value, Value]: ...
    @overload
    def Unique(
        self, X: Operand, /, *, axis: IntLike | None = None, sorted: IntLike | None = 1, outputs: Literal[4],
        name: str = ""
    ) -> tuple[Value, Value, Value, Value]: ...
    @overload
    def Unique(
        self, X: Operand, /, *, axis: IntLike | None = None, sorted: IntLike | None = 1, outputs: int, name:
        str = ""
    ) -> Any: ...

    @overload
    def Unsqueeze(self, data: Operand, axes: Operand, /, *, name: str = "") -> Value:
        """Unsqueeze: `data` with a dimension of size 1 at each of `axes`, which are axes of the output.

        Inputs:
            data: A tensor of any shape.
            axes: The positions of the new dimensions in the output, counted from its back if negative.

        Outputs:
            expanded: The same elements in more dimensions.
        """
    @overload
    def Unsqueeze(self, data: Operand, /, *, axes: IntsLike, name: str = "") -> Value: ...

    @overload
    def Upsample(
        self, X: Operand, scales: Operand, /, *, mode: StringLike | None = 'nearest', name: str = ""
    ) -> Value:
        """Upsample: `X` with `floor(scale * size)` elements along each axis: the element before the
        coordinate `index / scale`, or a linear interpolation of the two around it.

        Inputs:
            X: A tensor of any shape.
            scales: The new size of each axis divided by the old; 1 or more.

        Attributes:
            mode (string, default 'nearest'): The interpolation between elements. Values: `nearest`,
                `linear`.

        Outputs:
            Y: The enlarged tensor.

        Removed with opset 10.
        """
    @overload
    def Upsample(
        self, X: Operand, /, *, mode: StringLike | None = 'nearest', scales: FloatsLike | None = None,
        height_scale: FloatLike | None = None, width_scale: FloatLike | None = None, name: str = ""
    ) -> Value: ...

    def Where(self, condition: Operand, X: Operand, Y: Operand, /, *, name: str = "") -> Value:
        """Where: The element of `X` where `condition` is true, else the element of `Y`.

        Inputs:
            condition: Chooses between `X` and `Y`.
            X: Taken where `condition` is true.
            Y: Taken where `condition` is false.

        Outputs:
            output: The shape that all three inputs broadcast to.
        """

    def Xor(
        self, A: Operand, B: Operand, /, *, axis: IntLike | None = None, broadcast: IntLike | None = None,
        name: str = ""
    ) -> Value:
        """Xor: Whether exactly one of the two elements is true.

        Inputs:
            A: The first operand.
            B: The second operand.

        Attributes:
            axis (int, up to version 1): The axis of `A` at which the dimensions of `B` begin; by
                default they are its last.
            broadcast (int, up to version 1): 1: `B` is broadcast to the shape of `A`.

        Outputs:
            C: The shape to which both inputs broadcast.
        """

    def domain(self, name: str, /) -> DomainOperators: ...
    @property
    def ml(self) -> MlOperators: ...
    @property
    def preview(self) -> PreviewOperators: ...
    @property
    def training(self) -> TrainingOperators: ...

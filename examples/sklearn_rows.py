"""scikit-learn: train on the rows, or on the features, that represent the others.

In a clone: pip install '.[sklearn]' && python -m examples.sklearn_rows
"""

from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from dgn.apps.adapters.sklearn import FeatureSelector, RowSelector

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)

rows = RowSelector(k=100).fit(X_train)
few = LogisticRegression(max_iter=1000).fit(rows.transform(X_train), y_train[rows.indices_])
first = LogisticRegression(max_iter=1000).fit(X_train[:100], y_train[:100])
print(f"100 rows: {few.score(X_test, y_test):.3f}; first 100: {first.score(X_test, y_test):.3f}")

pipeline = make_pipeline(FeatureSelector(k=20), LogisticRegression(max_iter=1000))
print(f"20 of 64 features: {pipeline.fit(X_train, y_train).score(X_test, y_test):.3f}")

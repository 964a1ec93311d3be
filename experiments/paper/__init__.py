"""The experiment of the paper: from FEVER's files to its tables, figures and stories.

    python -m experiments.paper DATA --vectors FILE --out FOLDER

Read the modules in this order:

    published   the numbers of the paper
    data        claims and pages, and which of them train, choose and are reported
    features    mean word vectors of claims and sentences, as a table
    networks    the settings of a network, and what the paper leaves open as choices
    training    one run, and all runs of a plan; finished runs are not repeated
    plan        which networks are trained, with which searches and studies
    measures    what is measured on the reported claims
    results     everything above for one report
    report      the tables, and figures for the plots
    stories     the three claims of which the paper tells

What the paper is made of (layers, losses, networks) is in `dgn.learn`.
"""
